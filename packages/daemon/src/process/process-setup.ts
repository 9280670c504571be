/**
 * Sets up a process before other modules are loaded: early signals must neither end it nor open Node's inspector, an
 * unsupported Node.js ends it with a message, and the oldest one prints no warning about the load of libraries. This
 * file imports nothing, so that it loads at once.
 */

/** Oldest supported Node.js, as in `engines` of the packages. */
const OLDEST_MAJOR = 22;
const OLDEST_MINOR = 12;

/** Returns the message about an unsupported Node.js. Returns undefined if it is supported. */
export function nodeProblem(version: string, path: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST_MAJOR || (major === OLDEST_MAJOR && minor >= OLDEST_MINOR)) return undefined;
  const needed = `Node.js ${OLDEST_MAJOR}.${OLDEST_MINOR} or newer is needed, and ${path} is ${version}`;
  return `${needed}; install a newer one, and put its folder first in PATH`;
}

// Older versions fail to load the libraries, with an error that does not name the cause.
const unsupported = nodeProblem(process.versions.node, process.execPath);
if (unsupported !== undefined) {
  process.stderr.write(`${unsupported}\n`);
  process.exit(1);
}

/** Returns true for the warning of Node.js 22.12 about `require` of an ES module, which newer versions do not print. */
export function isEsModuleWarning([warning, type]: readonly unknown[]): boolean {
  return type === 'ExperimentalWarning' && String(warning).includes('loading ES Module');
}

const emitWarning = process.emitWarning.bind(process);
// Node.js prints it only for packages outside of a `node_modules`, as in a checkout.
Object.assign(process, {
  emitWarning: (...given: Parameters<typeof emitWarning>): void => {
    if (!isEsModuleWarning(given)) emitWarning(...given);
  },
});

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGUSR1', 'SIGHUP', 'SIGUSR2'] as const;

export type DaemonSignal = (typeof SIGNALS)[number];

/** Returns true if the signal asks the program to stop. SIGUSR1 does in the Python Nodepool; Node's use is disabled. */
export function isStop(signal: DaemonSignal): boolean {
  return signal !== 'SIGHUP' && signal !== 'SIGUSR2';
}

/** Catches the signals of the process for the rest of its life. Create it once per process. */
export class ProcessSignals {
  private receiver: ((signal: DaemonSignal) => void) | undefined;
  /** Signals that arrived before there was a receiver. */
  private readonly early: DaemonSignal[] = [];

  constructor() {
    for (const signal of SIGNALS) process.on(signal, () => this.received(signal));
  }

  /** Passes every signal to `receiver` from now on, earlier ones included. */
  deliverTo(receiver: (signal: DaemonSignal) => void): void {
    this.receiver = receiver;
    for (const signal of this.early.splice(0)) receiver(signal);
  }

  private received(signal: DaemonSignal): void {
    if (this.receiver !== undefined) {
      this.receiver(signal);
      return;
    }
    // A second stop signal ends a program that hangs while it loads.
    if (isStop(signal) && this.early.some(isStop)) process.exit(1);
    this.early.push(signal);
  }
}

/** Ignores closed output pipes, e.g. of `head`, which exits after enough lines. */
export function ignoreBrokenPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

interface MainModule {
  /** Resolves with the exit code. */
  readonly main: (argv: readonly string[], signals: ProcessSignals) => Promise<number>;
}

/** Runs a program until its end. `load` is called once signals are caught, because loading a program takes a while. */
export function startProgram(load: () => MainModule | Promise<MainModule>): void {
  const signals = new ProcessSignals();
  ignoreBrokenPipes();
  const start = async (): Promise<void> => {
    const { main } = await load();
    process.exitCode = await main(process.argv, signals);
  };
  void start();
}
