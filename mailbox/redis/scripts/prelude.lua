-- Begins every script: names for the keys, the server's time in microseconds, and what several scripts do. `most`
-- stands before it. A number of microseconds stays exact in a script until the year 2255.
local due, last, dead, body, count, reply, held, sent, given = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Where the message of a delivery that is not over is, and until when; nothing if it is over.
local function where(id, receipt)
  if redis.call('HGET', held, id) ~= receipt then return end
  for _, place in ipairs({due, last}) do
    local till = redis.call('ZSCORE', place, id)
    if till and now < tonumber(till) then return place, tonumber(till) end
  end
end

local function bury(id)
  redis.call('ZREM', last, id)
  redis.call('HDEL', held, id)
  redis.call('RPUSH', dead, id)
end
