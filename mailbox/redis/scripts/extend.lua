-- ARGV: id, receipt, extension.
local place, till = where(ARGV[1], ARGV[2])
if not place then return 0 end
redis.call('ZADD', place, math.max(till, now + ARGV[3]), ARGV[1])
return 1
