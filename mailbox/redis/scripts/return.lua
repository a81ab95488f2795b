-- ARGV: id, receipt.
local place = where(ARGV[1], ARGV[2])
if not place then return 0 end
redis.call('ZREM', place, ARGV[1])
redis.call('HDEL', held, ARGV[1])
redis.call('HINCRBY', count, ARGV[1], -1)
redis.call('ZADD', due, now, ARGV[1])
return 1
