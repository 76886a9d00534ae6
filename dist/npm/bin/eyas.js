#!/usr/bin/env node
// Runs the command of the package for this platform, as if it had been started itself.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@eyas/${process.platform}-${process.arch}`;
let command;
try {
  command = require.resolve(`${name}/bin/eyas${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(
    `eyas: the package ${name} is not installed. Either there is none for this platform, or optional ` +
      "dependencies were left out (--omit=optional, or a lock file of another platform): install eyas again.",
  );
  process.exit(1);
}

const child = spawn(command, process.argv.slice(2), { stdio: "inherit" });
// What the terminal sends goes to the child as well; what is sent to this process alone has to be passed on.
const everywhere = ["SIGINT", "SIGTERM", "SIGHUP"];
const others = process.platform === "win32" ? [] : ["SIGQUIT", "SIGUSR1", "SIGUSR2"];
for (const signal of [...everywhere, ...others]) {
  process.on(signal, () => {
    // A terminal has already told the child.
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`eyas: ${command} cannot be run: ${error.message}`);
  process.exit(126);
});
child.on("exit", (status, signal) => {
  if (signal === null) {
    process.exit(status);
  }
  // The shell is to see how the child ended.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  setTimeout(() => process.exit(128 + constants.signals[signal]), 1000);
});
