-- ARGV: batch, visibility, a receipt for all that becomes one for each with the message's id.
local rows = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local n = redis.call('HINCRBY', count, id, 1)
  local receipt = ARGV[3] .. '-' .. id
  redis.call('HSET', held, id, receipt)
  local place = due
  if n >= most then
    redis.call('ZREM', due, id)
    place = last
  end
  redis.call('ZADD', place, now + ARGV[2], id)
  for _, v in ipairs({id, receipt, redis.call('HGET', body, id), tostring(n), redis.call('HGET', reply, id) or ''}) do
    rows[#rows + 1] = v
  end
end
return rows
