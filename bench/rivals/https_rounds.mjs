// Node's https module, in Node or in Deno: https_rounds.mjs AUTHORITY.pem. Each line `MODE URL` is answered with
// milliseconds, or with `error` and the reason. If https_proxy is set, requests go through it with CONNECT, because
// older versions of Node do not read that variable themselves.
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import process from "node:process";
import readline from "node:readline";
import tls from "node:tls";

const LIMIT = 1000 * Number(process.env.ROUND_LIMIT ?? 20);
const ca = readFileSync(process.argv[2]);
const proxy = process.env.https_proxy && new URL(process.env.https_proxy);

function tunnel(url) {
  return new Promise((resolve, reject) => {
    const path = `${url.hostname}:${url.port || 443}`;
    const request = http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path });
    request.on("connect", (response, socket) => {
      if (response.statusCode !== 200) reject(new Error(`the proxy returned ${response.statusCode}`));
      const tlsSocket = tls.connect({ socket, servername: url.hostname, ca }, () => resolve(tlsSocket));
      tlsSocket.on("error", reject);
    });
    request.on("error", reject);
    request.end();
  });
}

async function oneRound(mode, text) {
  if (mode !== "h1") throw new Error(`unknown mode ${mode}`);
  const url = new URL(text);
  const started = performance.now();
  const agent = new https.Agent({ ca });
  if (proxy) {
    const socket = await tunnel(url);
    agent.createConnection = () => socket;
  }
  return await new Promise((resolve, reject) => {
    const request = https.get(url, { agent, timeout: LIMIT }, (response) => {
      const elapsed = performance.now() - started;
      response.resume();
      response.on("end", () =>
        response.statusCode === 200 ? resolve(elapsed) : reject(new Error(`the status is ${response.statusCode}`))
      );
    });
    request.on("timeout", () => request.destroy(new Error("timed out")));
    request.on("error", reject);
  });
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [mode, url] = line.split(" ");
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("timed out")), LIMIT);
  });
  try {
    console.log((await Promise.race([oneRound(mode, url), timeout])).toFixed(4));
  } catch (error) {
    console.log("error", String(error.errors?.[0] ?? error).replace(/\s+/g, " "));
  } finally {
    clearTimeout(timer);
  }
}
