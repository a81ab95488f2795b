-- ARGV: id, body, name of a mailbox for replies, length of the mailbox.
if redis.call('HLEN', body) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', body, ARGV[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', reply, ARGV[1], ARGV[3]) end
redis.call('ZADD', due, now, ARGV[1])
return 1
