-- ARGV: batch, visibility, a receipt for all that becomes one for each with the message's id.
local rows = {}
local function give(id, receipt, place)
  redis.call('ZADD', place, 'GT', now + ARGV[2], id) -- a receiver may have extended the delivery
  local n, to = redis.call('HGET', count, id), redis.call('HGET', reply, id) or ''
  for _, v in ipairs({id, receipt, redis.call('HGET', body, id), n, to}) do rows[#rows + 1] = v end
end

-- The client repeats a call whose answer was lost. It gets the same deliveries again, unless they are over.
local again = redis.call('LRANGE', given, 0, -1)
for _, id in ipairs(again) do
  local receipt = ARGV[3] .. '-' .. id
  local place = where(id, receipt)
  if place then give(id, receipt, place) end
end
if #again > 0 then return rows end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local n = redis.call('HINCRBY', count, id, 1)
  local receipt = ARGV[3] .. '-' .. id
  redis.call('HSET', held, id, receipt)
  local place = due
  if n >= most then
    redis.call('ZREM', due, id)
    place = last
  end
  redis.call('RPUSH', given, id)
  give(id, receipt, place)
end
if #rows > 0 then redis.call('EXPIRE', given, 20) end -- a repetition begins within takeTimeout, 5 s
return rows
