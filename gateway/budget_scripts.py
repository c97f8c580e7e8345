"""The scripts by which a Valkey or Redis server keeps shared budgets; each is one atomic step. See `budget_store`.

Of one budget there is one hash: ``amount`` and ``at``, and for each gateway a field ``:NAME`` with the serial of its
last wish, what was granted to it, what it may give back (or its slots), and when it was heard of.
"""

GATEWAY_SECONDS = 30.0
"""A gateway that was not heard of for so long counts no longer as one of those that share."""
SETTLE_SECONDS = 2.0
"""A server that has just begun (or lost its memory) grants nothing so long: gateways say first what they took."""

_CLOCK = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
"""

TAKE = (
    _CLOCK
    + """
local kind, limit, me, serial = ARGV[1], tonumber(ARGV[2]), ':' .. ARGV[3], ARGV[4]
local take, least, give_back = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local owed, held, epoch = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]
if redis.call('HGET', KEYS[2], 'epoch') ~= epoch then return 'epoch' end

local amount, at = (kind == 'flow') and limit or 0, now
local kept, heard, names = {}, {}, {}
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
  local name, value = stored[i], stored[i + 1]
  if name == 'amount' then amount = tonumber(value)
  elseif name == 'at' then at = tonumber(value)
  else
    local last, granted, rest, when = string.match(value, '^(%S+) (%S+) (%S+) (%S+)$')
    if name == me and last == serial then return granted end
    kept[name], heard[name] = tonumber(rest), tonumber(when)
    names[#names + 1] = name
  end
end
table.sort(names)

local function grant(left)
  local granted = math.max(0, math.min(take, left))
  if granted < least then return 0 end
  return granted
end

local granted
local mine = kept[me] or 0
if kind == 'flow' then
  amount = math.min(limit, amount + math.max(0, now - at) * limit / 60)
  at = math.max(now, at)
  local excess = amount - limit
  for _, name in ipairs(names) do excess = excess + kept[name] end
  for _, name in ipairs(names) do
    if excess <= 0 then break end
    local dripped = math.min(kept[name], excess)
    kept[name], excess = kept[name] - dripped, excess - dripped
    local value = redis.call('HGET', KEYS[1], name)
    local last, given, _, when = string.match(value, '^(%S+) (%S+) (%S+) (%S+)$')
    local line = string.format('%s %s %.17g %s', last, given, kept[name], when)
    redis.call('HSET', KEYS[1], name, line)
  end
  mine = kept[me] or 0
  amount = amount + math.min(give_back, mine) - owed
  granted = grant(math.floor(amount))
  amount = amount - granted
  mine = math.max(0, mine - give_back) + granted
elseif kind == 'stock' then
  amount = math.max(0, amount - give_back) + owed
  granted = grant(limit - math.floor(amount))
  amount = amount + granted
else
  local others = 0
  for _, name in ipairs(names) do
    if name ~= me and heard[name] + 30 > now then others = others + kept[name] end
  end
  granted = grant(limit - others - held)
  mine = held + granted
end

local forget = (kind == 'stock') and 3456000 or 3600
for _, name in ipairs(names) do
  if name ~= me and heard[name] + forget < now then redis.call('HDEL', KEYS[1], name) end
end
local line = string.format('%s %.0f %.17g %.17g', serial, granted, mine, now)
redis.call('HSET', KEYS[1], 'amount', string.format('%.17g', amount), 'at', string.format('%.17g', at), me, line)
redis.call('EXPIRE', KEYS[1], forget)
return string.format('%.0f', granted)
"""
)
"""KEYS: the budget, the state. ARGV: kind, limit, gateway, serial, take, least, give_back, owed, held, epoch.

Gives what is granted; ``epoch`` = the server has another memory than the gateway thinks, and did nothing.
"""

JOIN = (
    _CLOCK
    + """
local epoch, born = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'born'))
if not epoch then
  epoch, born = ARGV[2], string.format('%.17g', now)
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'born', born)
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.17g', now - tonumber(ARGV[3])))
redis.call('ZADD', KEYS[2], string.format('%.17g', now), ARGV[1])
local names = redis.call('ZRANGE', KEYS[2], 0, -1)
table.sort(names)
local position = 0
for i, name in ipairs(names) do
  if name == ARGV[1] then position = i - 1 end
end
return {epoch, string.format('%.3f', now - tonumber(born)), tostring(#names), tostring(position)}
"""
)
"""KEYS: the state, the gateways. ARGV: gateway, a word for a new memory, for how long a gateway counts.

Gives the memory's word and age in seconds, the number of gateways and the place of this one among them.
"""

LEAVE = "return redis.call('ZREM', KEYS[1], ARGV[1])"
"""KEYS: the gateways. ARGV: gateway."""
