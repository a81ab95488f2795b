-- ARGV: id, receipt, delay.
local place = where(ARGV[1], ARGV[2])
if not place then return 0 end
if place == last then
  bury(ARGV[1])
else
  redis.call('HDEL', held, ARGV[1])
  redis.call('ZADD', due, now + ARGV[3], ARGV[1])
end
return 1
