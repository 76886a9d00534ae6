// The https module of Node, in Node or in Deno: https_rounds.mjs AUTHORITY.pem. Each line `MODE URL` is answered
// with milliseconds, or with `error` and the reason. Where https_proxy is set, by CONNECT: older Nodes do
// not read that variable by themselves.
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
    const asked = http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path });
    asked.on("connect", (answer, socket) => {
      if (answer.statusCode !== 200) reject(new Error(`the proxy says ${answer.statusCode}`));
      const secured = tls.connect({ socket, servername: url.hostname, ca }, () => resolve(secured));
      secured.on("error", reject);
    });
    asked.on("error", reject);
    asked.end();
  });
}

async function oneRound(mode, text) {
  if (mode !== "h1") throw new Error(`this client does not know ${mode}`);
  const url = new URL(text);
  const started = performance.now();
  const agent = new https.Agent({ ca });
  if (proxy) {
    const socket = await tunnel(url);
    agent.createConnection = () => socket;
  }
  return await new Promise((resolve, reject) => {
    const asked = https.get(url, { agent, timeout: LIMIT }, (answer) => {
      const elapsed = performance.now() - started;
      answer.resume();
      answer.on("end", () =>
        answer.statusCode === 200 ? resolve(elapsed) : reject(new Error(`the status is ${answer.statusCode}`))
      );
    });
    asked.on("timeout", () => asked.destroy(new Error("nothing came in time")));
    asked.on("error", reject);
  });
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [mode, url] = line.split(" ");
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("nothing came in time")), LIMIT);
  });
  try {
    console.log((await Promise.race([oneRound(mode, url), late])).toFixed(4));
  } catch (error) {
    console.log("error", String(error.errors?.[0] ?? error).replace(/\s+/g, " "));
  } finally {
    clearTimeout(timer);
  }
}
