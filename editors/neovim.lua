-- Start `irrun server` for XML files, in Neovim 0.7 or later. Copy this file to ~/.config/nvim/plugin/irrun.lua.
-- The server shows nothing for XML that is no OpenVINO IR.
local client

vim.api.nvim_create_autocmd("FileType", {
  pattern = "xml",
  callback = function(args)
    client = client or vim.lsp.start_client({ name = "irrun", cmd = { "irrun", "server" }, root_dir = vim.fn.getcwd() })
    vim.lsp.buf_attach_client(args.buf, client)
  end,
})
