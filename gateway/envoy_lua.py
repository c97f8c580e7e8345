"""What Envoy does itself for requests that no guard passes on: it edits their bodies and reads what answers took.

The scripts run on the routes of such requests alone. What they are to do comes from the decision's metadata, which no
client can write; what they found goes to the access log in metadata of their own.
"""

from gateway.envoy_clusters import EXT_AUTHZ_METADATA, GATEWAY_METADATA
from gateway.envoy_types import Json, message, typed
from gateway.ext_authz import EDITS_HEADER, UNGUARDED_HEADER, USAGE_INJECTED, USAGE_WHOLE

EVENTS_KEY = "events"
USAGE_KEY = "usage"
MOST_HELD_BYTES = 256 * 1024
"""Of an event whose end did not come; usage is never as long, so what is longer passes as it is."""
MOST_USAGE_BYTES = 4096
EXACT_EVENTS = 32
STEP_EVENTS = 4
"""To say how many events came costs as much as to read one. From the 32nd on they are said by four, ahead of what came:
who breaks off a long stream is charged up to three more, which its engine was about to write."""

_FILTER = "envoy.filters.http.lua"
_EVERYTHING = "unguarded"
_WHOLE_ANSWERS = "whole_answers"
"""Of requests that go on as they came and are answered in one piece; a phase without a function costs nothing."""
_PROTO = "envoy.extensions.filters.http.lua.v3"

_REQUEST = """
local function edited(body, edits)
  local pieces, at, place = {}, 1, 1
  while place <= #edits do
    local from, to, size, text = edits:match("^(%d+):(%d+):(%d+):()", place)
    pieces[#pieces + 1] = body:sub(at, from)
    pieces[#pieces + 1] = edits:sub(text, text + size - 1)
    at, place = to + 1, text + size
  end
  pieces[#pieces + 1] = body:sub(at)
  return table.concat(pieces)
end

function envoy_on_request(h)
  local decided = h:streamInfo():dynamicMetadata():get("@DECIDED@")
  local edits = decided["@EDITS@"]
  if edits == nil then return end
  local body = h:body()
  local size = body:setBytes(edited(body:getBytes(0, body:length()), edits))
  if h:headers():get("content-length") ~= nil then
    h:headers():replace("content-length", tostring(size))
  end
end
"""

_USAGE_IN = """
local function usage_in(raw)
  local usage = raw:match('"usage"%s*:%s*(%b{})')
  if usage == nil or #usage > @MOST_USAGE@ or not usage:find('_tokens"', 1, true) then return nil end
  return usage
end
"""

_EVENTS = """
local function block_end(text, from)
  local line, after_cr = from, false
  while true do
    local at = text:find("[\\r\\n]", line)
    if at == nil then return nil end
    local is_blank, is_cr = at == line, text:byte(at) == 13
    local is_certain = is_blank and after_cr
    if is_cr and at == #text and not is_certain then return nil end
    line = at + 1
    if is_cr and not is_certain and text:byte(line) == 10 then is_cr, line = false, line + 1 end
    if is_blank then return line - 1 end
    after_cr = is_cr
  end
end

local function has_output(raw)
  if raw:find("^data: ?%[DONE%][\\r\\n]*$") then return false end
  for line in raw:gmatch("[^\\r\\n]+") do
    if line:byte(1) ~= 58 then return true end
  end
  return false
end

local function seen(state, raw)
  if not has_output(raw) then return raw end
  state.events = state.events + 1
  if not raw:find('"usage"', 1, true) then return raw end
  local usage = usage_in(raw)
  state.usage = usage or state.usage
  if not state.is_injected then return raw end
  if usage ~= nil and raw:gsub(" ", ""):find('"choices":[]', 1, true) then
    state.events = state.events - 1
    return ""
  end
  raw = raw:gsub(',"usage":null', "")
  return (raw:gsub(', "usage": null', ""))
end

local function one_event(state, text)
  local size = #text
  if state.held ~= "" or text:find("\\n\\n", 1, true) ~= size - 1 or text:sub(1, 7) ~= "data: {" then return nil end
  local at = text:find('"usage"', 8, true)
  if at ~= nil then
    local is_null = text:sub(at - 1, at + 11) == ',"usage":null' and not text:find('"usage"', at + 12, true)
    if not is_null or text:find("\\r", 1, true) then return nil end
    if state.is_injected then text = text:sub(1, at - 2) .. text:sub(at + 12) end
  end
  state.events = state.events + 1
  return text
end

local function shown(state, text)
  local known = one_event(state, text)
  if known ~= nil then return known end
  local pieces, from = {}, 1
  text = state.held .. text
  while true do
    local last = block_end(text, from)
    if last == nil then break end
    pieces[#pieces + 1] = seen(state, text:sub(from, last))
    from = last + 1
  end
  state.held = text:sub(from)
  if #state.held > @MOST_HELD@ then
    pieces[#pieces + 1], state.held = state.held, ""
  end
  return table.concat(pieces)
end
"""

_FOLLOW_STREAM = """
local function follow_stream(h, is_injected, length)
  local state = {events = 0, held = "", is_injected = is_injected}
  local told, told_usage, left = 0, nil, length
  local function tell(name, value)
    h:streamInfo():dynamicMetadata():set("@FOUND@", name, value)
  end
  for chunk in h:bodyChunks() do
    local size = chunk:length()
    if size > 0 then
      local text = chunk:getBytes(0, size)
      local new = shown(state, text)
      if left ~= nil then left = left - size end
      if is_injected then
        if left == 0 then new, state.held = new .. state.held, "" end
        if new ~= text then chunk:setBytes(new) end
      end
      if state.events > told then
        told = state.events < @EXACT@ and state.events or state.events + @STEP@ - 1
        tell("@EVENTS@", told)
      end
      if state.usage ~= told_usage then
        told_usage = state.usage
        tell("@USAGE@", told_usage)
      end
    elseif is_injected and state.held ~= "" then
      chunk:setBytes(state.held)
      state.held = ""
    end
  end
  if told ~= state.events then tell("@EVENTS@", state.events) end
end

"""

_FOLLOW_WHOLE = """
local function follow_whole(h)
  local held, usage = "", nil
  for chunk in h:bodyChunks() do
    local size = chunk:length()
    if size > 0 then
      local text = held .. chunk:getBytes(0, size)
      local at, last = 0, nil
      repeat
        at = text:find('"usage"', at + 1, true)
        last = at or last
      until at == nil
      if last ~= nil then usage = usage_in(text:sub(last)) or usage end
      held = (last ~= nil and #text - last < @MOST_USAGE@) and text:sub(last) or text:sub(-8)
    end
  end
  if usage ~= nil then h:streamInfo():dynamicMetadata():set("@FOUND@", "@USAGE@", usage) end
end
"""

_RESPONSE = """
function envoy_on_response(h)
  local headers = h:headers()
  if headers:get(":status") ~= "200" then return end
  local kind = (headers:get("content-type") or ""):lower()
  if kind:find("^text/event%-stream") then
    local decided = h:streamInfo():dynamicMetadata():get("@DECIDED@")
    local length = headers:get("content-length")
    follow_stream(h, decided["@UNGUARDED@"] == "@INJECTED@", length and tonumber(length))
  else
    follow_whole(h)
  end
end
"""

_WHOLE_RESPONSE = """
function envoy_on_response(h)
  if h:headers():get(":status") == "200" then follow_whole(h) end
end
"""


def script() -> str:
    """The Lua of requests that are edited, or answered by streams."""
    return _filled(_REQUEST + _USAGE_IN + _EVENTS + _FOLLOW_STREAM + _FOLLOW_WHOLE + _RESPONSE)


def whole_answer_script() -> str:
    """The Lua of requests that go on as they came and are answered in one piece."""
    return _filled(_USAGE_IN + _FOLLOW_WHOLE + _WHOLE_RESPONSE)


def lua_filter() -> Json:
    """The filter, which does nothing on routes that do not name a script."""
    scripts = {_EVERYTHING: script(), _WHOLE_ANSWERS: whole_answer_script()}
    return typed(
        _FILTER, f"{_PROTO}.Lua", source_codes={name: {"inline_string": text} for name, text in scripts.items()}
    )


def with_script(usage: str = "") -> Json:
    """What a route says so that the script runs for it; ``usage`` = what its decisions say that happens to usage."""
    name = _WHOLE_ANSWERS if usage == USAGE_WHOLE else _EVERYTHING
    return {_FILTER: message(f"{_PROTO}.LuaPerRoute", name=name)}


def _filled(text: str) -> str:
    words = {
        "DECIDED": EXT_AUTHZ_METADATA,
        "EDITS": EDITS_HEADER,
        "UNGUARDED": UNGUARDED_HEADER,
        "INJECTED": USAGE_INJECTED,
        "FOUND": GATEWAY_METADATA,
        "EVENTS": EVENTS_KEY,
        "USAGE": USAGE_KEY,
        "EXACT": str(EXACT_EVENTS),
        "STEP": str(STEP_EVENTS),
        "MOST_HELD": str(MOST_HELD_BYTES),
        "MOST_USAGE": str(MOST_USAGE_BYTES),
    }
    for name, word in words.items():
        text = text.replace(f"@{name}@", word)
    return text
