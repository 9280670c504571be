#!/usr/bin/env node
'use strict';
// Stand-in for actions/runner, without dependencies, for hosts with Node.js 18 or later. It takes a just-in-time
// configuration as `./run.sh --jitconfig TEXT` or in ACTIONS_RUNNER_INPUT_JITCONFIG, gets one job from the simulated
// GitHub, runs it and ends. Like the real `run.sh`, it refuses root without RUNNER_ALLOW_RUNASROOT, stores the
// configuration beside itself, runs the hooks ACTIONS_RUNNER_HOOK_JOB_STARTED and _COMPLETED, and exits with 0 even if
// the job fails. STAND_IN_BEHAVIOUR replaces the behaviour that the service has chosen.

const { createPrivateKey, randomUUID, sign } = require('node:crypto');
const { spawn } = require('node:child_process');
const { mkdirSync, writeFileSync } = require('node:fs');
const { hostname, platform } = require('node:os');
const { join, resolve } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const VERSION = '2.330.0-simulated';
const ASSERTION_S = 300;
const RENEW_MS = Number(process.env.STAND_IN_RENEW_MS ?? 60_000);
const RETRY_MS = Number(process.env.STAND_IN_RETRY_MS ?? 1000);
/** Time after which a runner ends that cannot reach the service (ms). */
const GIVE_UP_MS = Number(process.env.STAND_IN_GIVE_UP_MS ?? 900_000);
/** Time that a cancelled job has to end before it is killed (ms). */
const KILL_MS = 5000;

class Refusal extends Error {
  constructor(status, text) {
    super(`HTTP ${status}: ${text.slice(0, 500)}`);
    this.status = status;
    this.text = text;
  }
}

function say(text) {
  process.stdout.write(`${new Date().toISOString().replace('T', ' ').slice(0, 19)}Z: ${text}\n`);
}

function jitConfig(args) {
  const index = args.indexOf('--jitconfig');
  const text = index >= 0 ? args[index + 1] : process.env.ACTIONS_RUNNER_INPUT_JITCONFIG?.trim();
  // Jobs must not see the secret.
  for (const name of Object.keys(process.env)) if (/^ACTIONS_RUNNER_INPUT_/i.test(name)) delete process.env[name];
  return text;
}

/** Stores the files of the configuration beside this program and returns their contents. */
function unpack(text) {
  const files = JSON.parse(Buffer.from(text, 'base64').toString('utf8'));
  const parsed = {};
  for (const [name, content] of Object.entries(files)) {
    const bytes = Buffer.from(content, 'base64');
    writeFileSync(join(__dirname, name), bytes, { mode: 0o600 });
    parsed[name] = JSON.parse(bytes.toString('utf8'));
  }
  return { settings: parsed['.runner'], credentials: parsed['.credentials'], rsa: parsed['.credentials_rsaparams'] };
}

class Service {
  constructor({ settings, credentials, rsa }) {
    this.settings = settings;
    this.data = credentials.Data;
    const url = (text) => Buffer.from(text, 'base64').toString('base64url');
    const { modulus, exponent, d, p, q, dp, dq, inverseQ } = rsa;
    const members = { n: modulus, e: exponent, d, p, q, dp, dq, qi: inverseQ };
    const jwk = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, url(value)]));
    this.key = createPrivateKey({ key: { kty: 'RSA', ...jwk }, format: 'jwk' });
  }

  /** Exchanges a signed assertion for a token. */
  async logIn() {
    const { ClientId: clientId, AuthorizationUrl: url } = this.data;
    const now = Math.floor(Date.now() / 1000);
    const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = { sub: clientId, iss: clientId, aud: url, jti: randomUUID(), nbf: now, exp: now + ASSERTION_S };
    const signed = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}`;
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: `${signed}.${sign('RSA-SHA256', Buffer.from(signed), this.key).toString('base64url')}`,
    });
    this.token = (await read(await fetch(url, { method: 'POST', body: form }))).access_token;
  }

  /** Calls the service; a refused token is replaced once. */
  async call(method, url, body, signal) {
    const attempt = async () => {
      const headers = { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' };
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      return read(await fetch(url, { method, headers, signal, ...text }));
    };
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      await this.logIn();
      return attempt();
    }
  }

  broker(method, path, body, signal) {
    return this.call(method, new URL(path, this.settings.ServerUrlV2), body, signal);
  }

  message(status, signal) {
    const os = encodeURIComponent(platform());
    const query = `sessionId=${this.session}&status=${status}&runnerVersion=${VERSION}&os=${os}`;
    return this.broker('GET', `message?${query}`, undefined, signal);
  }
}

/** Returns the JSON of an answer, or undefined if it has none. */
async function read(answer) {
  const text = await answer.text();
  if (!answer.ok) throw new Refusal(answer.status, text);
  return text === '' ? undefined : JSON.parse(text);
}

/** Repeats an action while the service cannot be reached or is in trouble. */
async function persist(action) {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      const passes = !(error instanceof Refusal) || error.status >= 500 || error.status === 429;
      if (error.name === 'AbortError' || !passes || Date.now() > giveUpAt) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** Runs a command of the shell. Resolves with true if it succeeds. */
function shell(command, folder, signal) {
  return new Promise((done) => {
    const child = spawn('/bin/sh', ['-c', command], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
    const kill = () => {
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), KILL_MS).unref();
    };
    signal.addEventListener('abort', kill);
    child.on('error', (error) => done(say(`Cannot run a command: ${error.message}`) === true));
    child.on('exit', (code) => {
      signal.removeEventListener('abort', kill);
      done(code === 0);
    });
  });
}

/** Waits until the service has a job for this runner. */
async function nextJob(service) {
  for (;;) {
    const message = await persist(() => service.message('Online'));
    if (message?.messageType !== 'RunnerJobRequest') continue;
    const reference = JSON.parse(message.body);
    const url = (path) => new URL(path, reference.run_service_url);
    const request = { jobMessageId: reference.runner_request_id, runnerOS: 'Linux' };
    try {
      return { job: await persist(() => service.call('POST', url('acquirejob'), request)), url };
    } catch (error) {
      // The job was cancelled, or another runner has it.
      if (!(error instanceof Refusal) || error.status !== 404) throw error;
    }
  }
}

/** Does the work of a job and returns its result. */
async function work({ simulation, jobId }, folder, cancelled) {
  const { durationMs, conclusion, run, behaviour } = simulation;
  if (behaviour === 'never-ends-job') {
    await new Promise((resolve) => cancelled.addEventListener('abort', resolve));
    return 'canceled';
  }
  mkdirSync(folder, { recursive: true });
  const started = process.env.ACTIONS_RUNNER_HOOK_JOB_STARTED;
  const completed = process.env.ACTIONS_RUNNER_HOOK_JOB_COMPLETED;
  process.env.GITHUB_ACTIONS = 'true';
  process.env.GITHUB_JOB = jobId;
  let isGood = started === undefined || (await shell(started, folder, cancelled));
  if (isGood && run !== undefined) isGood = await shell(run, folder, cancelled);
  if (isGood) await sleep(durationMs, undefined, { signal: cancelled }).catch(() => undefined);
  if (completed !== undefined) isGood = (await shell(completed, folder, new AbortController().signal)) && isGood;
  if (cancelled.aborted) return 'canceled';
  return isGood ? conclusion : 'failed';
}

/** Runs a job while it is renewed, and reports its end. */
async function runJob(service, { job, url }, folder) {
  const { plan, jobId, jobDisplayName, simulation } = job;
  say(`Running job: ${jobDisplayName}`);
  if (simulation.behaviour === 'dies-in-job') process.kill(process.pid, 'SIGKILL');
  if (simulation.behaviour === 'hangs-in-job') await new Promise(() => setInterval(() => undefined, RENEW_MS));
  const cancelled = new AbortController();
  const ended = new AbortController();
  const body = { planId: plan.planId, jobId };
  const lost = (error) => {
    if (ended.signal.aborted) return;
    say(`The service does not know the job any more: ${error.message}`);
    cancelled.abort();
  };
  const renewals = async () => {
    for (;;) {
      await sleep(RENEW_MS, undefined, { signal: ended.signal });
      await persist(() => service.call('POST', url('renewjob'), body, ended.signal));
    }
  };
  const cancellations = async () => {
    for (;;) {
      const message = await persist(() => service.message('Busy', ended.signal));
      if (message?.messageType !== 'JobCancellation') continue;
      say('The job is cancelled');
      return cancelled.abort();
    }
  };
  void renewals().catch(lost);
  void cancellations().catch(lost);
  const conclusion = await work(job, folder, cancelled.signal);
  await persist(() => service.call('POST', url('completejob'), { ...body, conclusion }));
  ended.abort();
  say(`Job ${jobDisplayName} completed with result: ${conclusion[0].toUpperCase()}${conclusion.slice(1)}`);
}

async function main() {
  if (process.getuid?.() === 0 && !process.env.RUNNER_ALLOW_RUNASROOT) {
    process.stdout.write('Must not run interactively with sudo\nExiting runner...\n');
    return;
  }
  const text = jitConfig(process.argv.slice(2));
  if (!text) {
    process.stdout.write('Runner is not configured.\n');
    return;
  }
  const configuration = unpack(text);
  const { settings } = configuration;
  const behaviour = process.env.STAND_IN_BEHAVIOUR ?? settings.Simulation?.behaviour ?? 'normal';
  if (behaviour === 'dies-at-once') process.kill(process.pid, 'SIGKILL');
  if (behaviour === 'never-connects') await new Promise(() => setInterval(() => undefined, RENEW_MS));
  const service = new Service(configuration);
  const stop = () => {
    say('Exiting...');
    const bye = service.token === undefined ? Promise.resolve() : service.broker('DELETE', 'session');
    void bye.catch(() => undefined).finally(() => process.exit(0));
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  await persist(() => service.logIn());
  const agent = { id: Number(settings.AgentId), name: settings.AgentName, version: VERSION, osDescription: platform() };
  const opened = await persist(() => service.broker('POST', 'session', { ownerName: hostname(), agent }));
  service.session = opened.sessionId;
  process.stdout.write('\n√ Connected to GitHub\n\n');
  process.stdout.write(`Current runner version: '${VERSION}'\n`);
  if (behaviour === 'hangs-online') await new Promise(() => setInterval(() => undefined, RENEW_MS));
  if (behaviour === 'ends-without-job') {
    await service.broker('DELETE', 'session');
    return;
  }
  say('Listening for Jobs');
  const next = await nextJob(service);
  await runJob(service, next, resolve(__dirname, settings.WorkFolder));
}

main().then(
  () => process.exit(0),
  (error) => {
    const isDeleted = error instanceof Refusal && /invalid_client|RunnerNotFound/.test(error.text);
    const why = 'The runner registration has been deleted from the server, please re-configure.';
    process.stdout.write(`${isDeleted ? `Failed to create a session. ${why}` : error.stack}\n`);
    process.stdout.write('Runner listener exit with terminated error, stop the service, no retry needed.\n');
    process.exit(0);
  },
);
