-- ARGV: id, body, name of a mailbox for replies, length of the mailbox.
-- The client repeats a call whose answer was lost. The message may have been received or acknowledged meanwhile.
if redis.call('HEXISTS', body, ARGV[1]) == 1 or redis.call('ZSCORE', sent, ARGV[1]) then return 1 end
if redis.call('HLEN', body) >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', body, ARGV[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', reply, ARGV[1], ARGV[3]) end
redis.call('ZADD', due, now, ARGV[1])
redis.call('ZADD', sent, now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', sent, '-inf', now - 60 * 1000000)
redis.call('ZREMRANGEBYRANK', sent, 0, -100001) -- keeps 100,000 ids, about 15 MB
redis.call('EXPIRE', sent, 60)
return 1
