-- Posts each line of a file in turn, and starts again behind the last. The requests are made before
-- the clock starts, so that the load generator only has to send them.
--
-- wrk -s post.lua URL -- FILE

local requests = {}
local last = 0

function init(args)
  local headers = { ["Content-Type"] = "application/json" }
  for line in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, headers, line)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end
