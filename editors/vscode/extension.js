// Start `irrun server` for XML files. The server shows nothing for XML that is no OpenVINO IR.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("irrun").get("command");
  client = new LanguageClient(
    "irrun",
    "irrun",
    { command, args },
    { documentSelector: [{ scheme: "file", language: "xml" }, { scheme: "untitled", language: "xml" }] },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined; // a client that has not started cannot be stopped
    vscode.window.showErrorMessage(
      `irrun: cannot start "${[command, ...args].join(" ")}". Install it with pip install "irrun[server]", ` +
        `or set irrun.command to its path. (${error.message})`,
    );
  }
}

async function activate(context) {
  const restart = async () => {
    await client?.stop();
    await start();
  };
  context.subscriptions.push(vscode.commands.registerCommand("irrun.restart", restart));
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
