// Activate the extension for VS Code: node extension.js EXTENSION.js SETTING '[COMMAND, …]'. Writes what it did as JSON.
//
// The extension starts with the first of two commands, and restarts twice with the second. The client of the stub starts
// the server, asks for its capabilities, and refuses to stop unless it runs, as the client of npm does.
"use strict";

const { spawn } = require("node:child_process");
const Module = require("node:module");

const [, , extension, setting, commands] = process.argv;
const values = JSON.parse(commands);
const said = { commands: [], errors: [], servers: [], stopped: 0, selector: null };
const registered = {};

class LanguageClient {
  constructor(id, name, server, options) {
    this.server = server;
    said.selector = options.documentSelector;
  }

  async start() {
    const child = spawn(this.server.command, this.server.args, { stdio: ["pipe", "pipe", "inherit"] });
    const answer = await new Promise((resolve, reject) => {
      let text = "";
      child.on("error", reject);
      child.on("exit", () => reject(new Error("the server has ended")));
      child.stdout.on("data", (data) => {
        text += data;
        const [head, body] = text.split("\r\n\r\n");
        if (body !== undefined && Buffer.byteLength(body) >= Number(/Content-Length: (\d+)/.exec(head)[1])) {
          resolve(JSON.parse(body));
        }
      });
      const params = { processId: process.pid, rootUri: null, capabilities: {} };
      const request = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params });
      child.on("spawn", () => child.stdin.write(`Content-Length: ${Buffer.byteLength(request)}\r\n\r\n${request}`));
    });
    this.child = child;
    said.servers.push({ name: answer.result.serverInfo.name, hover: answer.result.capabilities.hoverProvider });
  }

  async stop() {
    if (this.child === undefined) {
      throw new Error("the client is not running and can't be stopped");
    }
    this.child.removeAllListeners("exit");
    this.child.kill();
    said.stopped += 1;
  }
}

const [section, key] = setting.split(".");
const vscode = {
  workspace: {
    getConfiguration: (name) => ({ get: (own) => (name === section && own === key ? values[0] : undefined) }),
  },
  window: { showErrorMessage: (text) => said.errors.push(text) },
  commands: {
    registerCommand(name, run) {
      said.commands.push(name);
      registered[name] = run;
      return { dispose() {} };
    },
  },
};
const modules = { vscode, "vscode-languageclient/node": { LanguageClient } };
const load = Module._load;
Module._load = (name, ...rest) => modules[name] ?? load(name, ...rest);

async function main() {
  const { activate, deactivate } = require(extension);
  const context = { subscriptions: [] };
  await activate(context);
  values.shift();
  await registered[said.commands[0]]();
  await registered[said.commands[0]]();
  await deactivate();
  console.log(JSON.stringify({ ...said, disposed: context.subscriptions.length }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
