-- Run the steps of a file in Neovim, and write their results: IRRUN_STEPS and IRRUN_RESULTS name the files.
local steps = vim.fn.json_decode(vim.fn.readfile(vim.env.IRRUN_STEPS))
local buffer, results = vim.api.nvim_get_current_buf(), {}
local patience = 400000 -- milliseconds

vim.opt.swapfile = false
vim.opt.undolevels = -1
vim.api.nvim_command("set filetype=xml")
vim.wait(patience, function()
  local client = vim.lsp.get_active_clients()[1]
  return client ~= nil and client.initialized and vim.lsp.buf_is_attached(buffer, client.id)
end, 20)

for _, step in ipairs(steps) do
  local result
  if step.method then
    for _, answer in pairs(vim.lsp.buf_request_sync(buffer, step.method, step.params, patience) or {}) do
      result = answer.result
    end
  else
    if step.text then
      vim.api.nvim_buf_set_text(buffer, step.line, step.start, step.line, step["end"], { step.text })
    end
    vim.wait(patience, function() return #vim.diagnostic.get(buffer) == step.findings end, 20)
    result = vim.tbl_map(function(found) return { found.lnum, found.code } end, vim.diagnostic.get(buffer))
  end
  table.insert(results, result == nil and vim.NIL or result)
end
vim.fn.writefile({ vim.fn.json_encode(results) }, vim.env.IRRUN_RESULTS)
vim.lsp.stop_client(vim.lsp.get_active_clients())
vim.wait(patience, function() return #vim.lsp.get_active_clients() == 0 end, 20)
vim.cmd("qa!")
