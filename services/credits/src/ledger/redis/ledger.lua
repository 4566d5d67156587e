-- One call is one atomic step on one organization's ledger. Every decision is made on what was read, writes are only
-- collected meanwhile and go out together at the end: a script that fails half-way is not rolled back.
-- KEYS: account, open, rows, due, unmirrored, then the r:<id> or g:<id> of the call. All in one slot, as are the r:<id>
-- of other reservations, whose names follow from the account's.
-- ARGV[1]: the command as JSON. Amounts are whole numbers up to 2^53-1, exact in Lua; they are written by text(), since
-- tostring gives 1e+15, and negated as 0 - n, since -0 is not an integer to Redis.
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

-- Changes the account in memory and writes its row, whose hash covers the hash of the row before.
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
-- What a rebuild replaced is unknown; a tombstone, which has no row to be rebuilt from, outlives it.
local function reservation(id)
  if known[id] == nil then
    local found = redis.call('HMGET', RESERVATION .. id, 'state', 'amount', 'charged', 'shortfall', 'expiresAtMs', 'generation')
    known[id] = found[1] and (found[2] == '' or found[6] == generation) and {
      id = id, state = found[1], amount = tonumber(found[2]), charged = tonumber(found[3]), shortfall = tonumber(found[4]), expiresAtMs = tonumber(found[5]),
    } or false
  end
  return known[id]
end
local function putReservation(one)
  local key = RESERVATION .. one.id
  known[one.id] = one
  later('HSET', key, 'state', one.state, 'amount', one.amount and text(one.amount) or '', 'charged', text(one.charged), 'shortfall', text(one.shortfall),
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
  for _, id in ipairs(ids) do giveBack('EXPIRE', assert(reservation(id), 'an open reservation is missing'), call.itself) end
  return #ids
end
-- The reservation as of now, or the refusal of its id.
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
  local one, refusal = present(call.id)
  if refusal then return { refusal } end
  if one then
    if one.amount and one.amount ~= call.amount then return { 'CONFLICT' } end
    return { one.state == 'OPEN' and 'RESERVED' or 'ENDED', one.state, text(account.availableMicros) }
  end
  if call.maxOpen > 0 and account.openReservations >= call.maxOpen then return { 'TOO_MANY_OPEN', '', text(account.availableMicros) } end
  if account.availableMicros < call.amount then return { 'INSUFFICIENT', '', text(account.availableMicros) } end
  post('RESERVE', call.id, call.author, { available = 0 - call.amount, reserved = call.amount, open = 1 })
  putReservation({ id = call.id, state = 'OPEN', amount = call.amount, charged = 0, shortfall = 0, expiresAtMs = nowMs + call.ttlMs })
  return { 'RESERVED', 'OPEN', text(account.availableMicros) }
end

function commands.extend()
  local one, refusal = present(call.id)
  if not one then return { refusal or 'UNKNOWN' } end
  if one.state == 'OPEN' then
    one.expiresAtMs = math.max(one.expiresAtMs, nowMs + call.ttlMs)
    putReservation(one)
  end
  return { 'FOUND', one.state }
end

function commands.settle()
  local one, refusal = present(call.id)
  if not one then return { refusal or 'UNKNOWN' } end
  if one.state == 'OPEN' then
    one.charged = math.min(call.amount, one.amount + account.availableMicros)
    one.shortfall = call.amount - one.charged
    post('SETTLE', one.id, call.author, { available = one.amount - one.charged, reserved = 0 - one.amount, spent = one.charged, shortfall = one.shortfall, open = -1 })
  elseif one.state == 'EXPIRED' then
    one.charged = math.min(call.amount, account.availableMicros)
    one.shortfall = call.amount - one.charged
    post('LATE_SETTLE', one.id, call.author, { available = 0 - one.charged, spent = one.charged, shortfall = one.shortfall })
  end
  if one.state == 'OPEN' or one.state == 'EXPIRED' then
    one.state = 'SETTLED'
    putReservation(one)
  end
  return { 'FOUND', one.state, text(one.charged), text(one.shortfall) }
end

function commands.release()
  local one, refusal = present(call.id)
  if refusal then return { refusal } end
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

-- Rows up to call.sequence are in the mirror: older ones may go.
function commands.mirrored()
  later('XTRIM', KEY.rows, 'MINID', text(call.keepFrom) .. '-0')
  if account.sequence == call.sequence then later('SREM', KEY.unmirrored, call.organization) end
  return {}
end

-- What is there, without trust in it: generation ('' without an account), newest row and its hash, hashes of the rows of
-- call.sequences ('' where one is not there), time.
local function inspect()
  local found = { generation, text(account.sequence), account.hash, text(nowMs) }
  for _, sequence in ipairs(call.sequences) do
    local row = redis.call('XRANGE', KEY.rows, text(sequence) .. '-0', text(sequence) .. '-0')[1]
    found[#found + 1] = row and row[2][4] or ''
  end
  return found
end

-- From here on nobody changes this ledger but the rebuild that holds the fence. call.generation: unless it is another's.
local function fence()
  if call.generation and generation ~= '' and generation ~= call.generation then return { 'MOVED' } end
  later('HSET', KEY.account, 'generation', call.fence)
  return { 'FENCED' }
end

-- Puts a rebuilt ledger behind the fence: first, in pieces, what is unknown until `replace` makes its generation the account's.
local function restore()
  if generation == call.generation then return { 'DONE' } end
  if generation ~= call.fence then return { 'MOVED' } end
  if call.command == 'replace' then
    for _, id in ipairs(redis.call('ZRANGE', KEY.open, 0, -1)) do later('DEL', RESERVATION .. id) end
    account = call.account
    later('DEL', KEY.account, KEY.open, KEY.rows)
    later('SREM', KEY.unmirrored, call.organization)
  end
  generation = call.generation
  for _, one in ipairs(call.reservations) do putReservation(one) end
  for _, one in ipairs(call.grants) do putGrant(one.id, one.amount) end
  if call.command == 'restore' then return { 'DONE' } end
  if account.sequence > 0 then later('XADD', KEY.rows, text(account.sequence) .. '-0', 'row', call.newest, 'hash', account.hash) end
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

-- Here the writing begins: nothing is decided any more.
for _, write in ipairs(writes) do redis.call(unpack(write)) end
local first = redis.call('ZRANGE', KEY.open, 0, 0, 'WITHSCORES')
if first[1] then redis.call('ZADD', KEY.due, first[2], call.organization) else redis.call('ZREM', KEY.due, call.organization) end
return result
