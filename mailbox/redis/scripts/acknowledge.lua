-- ARGV: id, receipt.
local place = where(ARGV[1], ARGV[2])
if not place then return 0 end
redis.call('ZREM', place, ARGV[1])
for _, k in ipairs({body, count, reply, held}) do redis.call('HDEL', k, ARGV[1]) end
return 1
