-- ARGV: limit.
-- Last deliveries whose time is over are dead letters from then on; nothing before needs to know.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', last, '-inf', now)) do bury(id) end
local rows = {}
for _, id in ipairs(redis.call('LRANGE', dead, 0, ARGV[1] - 1)) do
  for _, v in ipairs({id, redis.call('HGET', body, id), redis.call('HGET', count, id)}) do rows[#rows + 1] = v end
end
return rows
