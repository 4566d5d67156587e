-- Each call of this script is one atomic operation on one organization's ledger. All decisions are made on what was
-- read; writes are collected meanwhile and sent together at the end, because a script that fails half-way is not rolled
-- back.
-- At its memory limit Redis refuses the first write of a script if that one may need memory, and no write after it. So
-- every change starts with HSET or XADD, before it deletes anything: either all of it is written or nothing. Only
-- `fence` and `mirrored` start with another command, because they must work at the limit, too.
-- KEYS: account, open, rows, due, unmirrored, then r:<id> or g:<id> of the command's reservation or grant. All are in
-- one slot, as are the r:<id> of other reservations, whose names are derived from the account's.
-- ARGV[1]: the command as JSON. Amounts are integers up to 2^53-1, which Lua holds exactly. They are formatted by
-- text(), because tostring gives 1e+15, and negated as 0 - n, because Redis does not accept -0 as an integer.
local call = cjson.decode(ARGV[1])
local KEY = { account = KEYS[1], open = KEYS[2], rows = KEYS[3], due = KEYS[4], unmirrored = KEYS[5], own = KEYS[6] }
local RESERVATION = string.sub(KEY.account, 1, -8) .. 'r:'
local GRANT = string.sub(KEY.account, 1, -8) .. 'g:'
local MAX = 9007199254740991
local PARTS = { 'availableMicros', 'reservedMicros', 'spentMicros', 'grantedMicros', 'openReservations', 'sequence' }

local function text(number)
  assert(number == math.floor(number) and math.abs(number) <= MAX, 'not a whole number')
  return string.format('%.0f', number)
end
local function now()
  if call.nowMs then return call.nowMs end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local nowMs = now()

local writes = {}
local function later(...) writes[#writes + 1] = { ... } end

local values = redis.call('HMGET', KEY.account, 'generation', 'hash', unpack(PARTS))
local generation = values[1] or ''
local account = { hash = values[2] or '' }
for i, part in ipairs(PARTS) do account[part] = tonumber(values[i + 2] or '0') end
local sequenceBefore = account.sequence

local function isInWindow()
  return call.madeMs >= nowMs - call.retentionMs and call.madeMs <= nowMs + call.maxAheadMs
end

-- Changes the account in memory and adds the row to the writes. The row's hash covers the hash of the row before.
local function post(kind, id, author, by)
  account.availableMicros = account.availableMicros + (by.available or 0)
  account.reservedMicros = account.reservedMicros + (by.reserved or 0)
  account.spentMicros = account.spentMicros + (by.spent or 0)
  account.grantedMicros = account.grantedMicros + (by.granted or 0)
  account.openReservations = account.openReservations + (by.open or 0)
  account.sequence = account.sequence + 1
  for _, part in ipairs(PARTS) do assert(account[part] >= 0, 'below zero') end
  local row = table.concat({
    '{"sequence":', text(account.sequence), ',"kind":"', kind, '","id":"', id,
    '","availableDeltaMicros":', text(by.available or 0), ',"reservedDeltaMicros":', text(by.reserved or 0),
    ',"spentDeltaMicros":', text(by.spent or 0), ',"grantedDeltaMicros":', text(by.granted or 0),
    ',"shortfallMicros":', text(by.shortfall or 0), ',"availableMicros":', text(account.availableMicros),
    ',"reservedMicros":', text(account.reservedMicros), ',', author, ',"createdAtMs":', text(nowMs), '}',
  })
  account.hash = redis.sha1hex(account.hash .. row)
  later('XADD', KEY.rows, text(account.sequence) .. '-0', 'row', row, 'hash', account.hash)
end

local function putAccount()
  local write = { 'HSET', KEY.account, 'generation', generation, 'hash', account.hash }
  for _, part in ipairs(PARTS) do
    write[#write + 1] = part
    write[#write + 1] = text(account[part])
  end
  later(unpack(write))
end

local known = {}
-- A reservation of an earlier generation was replaced by a rebuild and is unknown. Tombstones are known in every
-- generation, because they have no row to be rebuilt from.
local function reservation(id)
  if known[id] == nil then
    local found = redis.call('HMGET', RESERVATION .. id,
      'state', 'amount', 'charged', 'shortfall', 'expiresAtMs', 'generation')
    known[id] = found[1] and (found[2] == '' or found[6] == generation) and {
      id = id, state = found[1], amount = tonumber(found[2]), charged = tonumber(found[3]),
      shortfall = tonumber(found[4]), expiresAtMs = tonumber(found[5]),
    } or false
  end
  return known[id]
end
local function putReservation(one)
  local key = RESERVATION .. one.id
  known[one.id] = one
  later('HSET', key, 'state', one.state, 'amount', one.amount and text(one.amount) or '',
    'charged', text(one.charged), 'shortfall', text(one.shortfall),
    'expiresAtMs', text(one.expiresAtMs), 'generation', generation)
  if one.state == 'OPEN' then
    later('PERSIST', key)
    later('ZADD', KEY.open, text(one.expiresAtMs), one.id)
  else
    later('PEXPIRE', key, text(call.keepMs))
    later('ZREM', KEY.open, one.id)
  end
end
local function putGrant(id, amount)
  later('HSET', GRANT .. id, 'amount', text(amount), 'generation', generation)
  later('PEXPIRE', GRANT .. id, text(call.keepMs))
end

local function giveBack(kind, one, author)
  post(kind, one.id, author, { available = one.amount, reserved = 0 - one.amount, open = -1 })
  one.state = kind == 'RELEASE' and 'RELEASED' or 'EXPIRED'
  putReservation(one)
end
local function expireDue(limit)
  local ids = redis.call('ZRANGEBYSCORE', KEY.open, '-inf', text(nowMs), 'LIMIT', 0, limit)
  for _, id in ipairs(ids) do
    giveBack('EXPIRE', assert(reservation(id), 'an open reservation is missing'), call.itself)
  end
  return #ids
end
-- The reservation's present state (it is expired first when it is due), or nil and why its id is rejected.
local function present(id)
  local one = reservation(id)
  if one and one.state == 'OPEN' and one.expiresAtMs > nowMs then return one end
  if one and one.state == 'OPEN' then giveBack('EXPIRE', one, call.itself) end
  if not isInWindow() then return nil, 'ID_OUT_OF_WINDOW' end
  return one or nil
end
local function accountParts()
  local parts = {}
  for i, part in ipairs(PARTS) do parts[i] = text(account[part]) end
  return parts
end

local commands = {}

function commands.grant()
  if not isInWindow() then return { 'ID_OUT_OF_WINDOW' } end
  local found = redis.call('HMGET', KEY.own, 'amount', 'generation')
  if found[1] and found[2] == generation then
    if tonumber(found[1]) ~= call.amount then return { 'CONFLICT' } end
    return { 'GRANTED', unpack(accountParts()) }
  end
  if account.grantedMicros + call.amount > MAX then return { 'ACCOUNT_FULL' } end
  post('GRANT', call.id, call.author, { available = call.amount, granted = call.amount })
  putGrant(call.id, call.amount)
  return { 'GRANTED', unpack(accountParts()) }
end

function commands.reserve()
  expireDue(call.expiries)
  local one, rejection = present(call.id)
  if rejection then return { rejection } end
  if one then
    if one.amount and one.amount ~= call.amount then return { 'CONFLICT' } end
    return { one.state == 'OPEN' and 'RESERVED' or 'ENDED', one.state, text(account.availableMicros) }
  end
  if call.maxOpen > 0 and account.openReservations >= call.maxOpen then
    return { 'TOO_MANY_OPEN', '', text(account.availableMicros) }
  end
  if account.availableMicros < call.amount then
    return { 'INSUFFICIENT', '', text(account.availableMicros) }
  end
  post('RESERVE', call.id, call.author, { available = 0 - call.amount, reserved = call.amount, open = 1 })
  putReservation({
    id = call.id, state = 'OPEN', amount = call.amount, charged = 0, shortfall = 0, expiresAtMs = nowMs + call.ttlMs
  })
  return { 'RESERVED', 'OPEN', text(account.availableMicros) }
end

function commands.extend()
  local one, rejection = present(call.id)
  if not one then return { rejection or 'UNKNOWN' } end
  if one.state == 'OPEN' then
    one.expiresAtMs = math.max(one.expiresAtMs, nowMs + call.ttlMs)
    putReservation(one)
  end
  return { 'FOUND', one.state }
end

function commands.settle()
  local one, rejection = present(call.id)
  if not one then return { rejection or 'UNKNOWN' } end
  if one.state == 'OPEN' then
    one.charged = math.min(call.amount, one.amount + account.availableMicros)
    one.shortfall = call.amount - one.charged
    post('SETTLE', one.id, call.author, {
      available = one.amount - one.charged, reserved = 0 - one.amount, spent = one.charged,
      shortfall = one.shortfall, open = -1
    })
  elseif one.state == 'EXPIRED' then
    one.charged = math.min(call.amount, account.availableMicros)
    one.shortfall = call.amount - one.charged
    post('LATE_SETTLE', one.id, call.author, {
      available = 0 - one.charged, spent = one.charged, shortfall = one.shortfall
    })
  end
  if one.state == 'OPEN' or one.state == 'EXPIRED' then
    one.state = 'SETTLED'
    putReservation(one)
  end
  return { 'FOUND', one.state, text(one.charged), text(one.shortfall) }
end

function commands.release()
  local one, rejection = present(call.id)
  if rejection then return { rejection } end
  if not one then
    one = { id = call.id, state = 'RELEASED', charged = 0, shortfall = 0, expiresAtMs = 0 }
    putReservation(one)
  elseif one.state == 'OPEN' then
    giveBack('RELEASE', one, call.author)
  end
  return { 'FOUND', one.state }
end

function commands.expire() return { text(expireDue(call.limit)) } end

function commands.balance() return accountParts() end

-- Rows up to call.sequence are in the mirror: removes those below call.keepFrom.
function commands.mirrored()
  later('XTRIM', KEY.rows, 'MINID', text(call.keepFrom) .. '-0')
  if account.sequence == call.sequence then later('SREM', KEY.unmirrored, call.organization) end
  return {}
end

-- What Redis holds, not verified: generation ('' without an account), the newest row's sequence and hash, time, and the
-- hashes of the rows in call.sequences ('' for a row that is not in Redis).
local function inspect()
  local found = { generation, text(account.sequence), account.hash, text(nowMs) }
  for _, sequence in ipairs(call.sequences) do
    local row = redis.call('XRANGE', KEY.rows, text(sequence) .. '-0', text(sequence) .. '-0')[1]
    found[#found + 1] = row and row[2][4] or ''
  end
  return found
end

-- Puts up a fence: the account's generation becomes call.fence, so that every command but those of the rebuild that
-- holds the fence is rejected. With call.generation: only if the ledger still has this generation.
local function fence()
  if call.generation and generation ~= '' and generation ~= call.generation then return { 'MOVED' } end
  later('PERSIST', KEY.account) -- changes nothing
  later('HSET', KEY.account, 'generation', call.fence)
  return { 'FENCED' }
end

-- Writes a rebuilt ledger behind the fence. `restore` writes pieces, which stay unknown until `replace` makes their
-- generation that of the account.
local function restore()
  if generation == call.generation then return { 'DONE' } end
  if generation ~= call.fence then return { 'MOVED' } end
  if call.command == 'replace' then
    later('HSET', KEY.account, 'generation', call.fence) -- changes nothing
    for _, id in ipairs(redis.call('ZRANGE', KEY.open, 0, -1)) do later('DEL', RESERVATION .. id) end
    account = call.account
    later('DEL', KEY.account, KEY.open, KEY.rows)
    later('SREM', KEY.unmirrored, call.organization)
  end
  generation = call.generation
  for _, one in ipairs(call.reservations) do putReservation(one) end
  for _, one in ipairs(call.grants) do putGrant(one.id, one.amount) end
  if call.command == 'restore' then return { 'DONE' } end
  if account.sequence > 0 then
    later('XADD', KEY.rows, text(account.sequence) .. '-0', 'row', call.newest, 'hash', account.hash)
  end
  putAccount()
  return { 'DONE' }
end

if call.command == 'inspect' then return inspect() end
local rebuilding = { fence = fence, restore = restore, replace = restore }
local result
if rebuilding[call.command] then
  result = rebuilding[call.command]()
else
  if generation == '' then generation = call.generation end
  if generation ~= call.generation or account.sequence < call.floor then return { 'REGRESSED' } end
  local answer = commands[call.command]()
  if account.sequence > sequenceBefore then
    putAccount()
    later('SADD', KEY.unmirrored, call.organization)
  end
  result = { 'DONE', text(account.sequence), account.hash, unpack(answer) }
end
if #writes == 0 then return result end

-- From here on the script only writes: every decision has been made.
for _, write in ipairs(writes) do redis.call(unpack(write)) end
local first = redis.call('ZRANGE', KEY.open, 0, 0, 'WITHSCORES')
if first[1] then
  redis.call('ZADD', KEY.due, first[2], call.organization)
else
  redis.call('ZREM', KEY.due, call.organization)
end
return result
