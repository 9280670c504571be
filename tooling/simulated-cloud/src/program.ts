/** Runs a simulated cloud as a program: prints its address as one line of JSON and runs until SIGTERM or SIGINT. */

import { parseArgs } from 'node:util';

export interface CloudProgram<S extends object, T extends { close(): Promise<void> }> {
  /** Settings by option name, e.g. `'boot-ms': 'bootMs'`; each is an integer. */
  readonly settings: Readonly<Record<string, keyof S>>;
  /** A repeatable option, e.g. `quota`. */
  readonly repeated?: string;
  /**
   * Starts the cloud; `repeated` contains the values of the repeatable option. Rejects with a message for the operator.
   */
  start(options: { readonly port: number; readonly settings: Partial<S> }, repeated: readonly string[]): Promise<T>;
  /** Returns the value to print as JSON. */
  describe(cloud: T): object;
}

/** Runs the program until it ends. The exit code is 1 if it cannot start. */
export async function runProgram<S extends object, T extends { close(): Promise<void> }>(
  program: CloudProgram<S, T>,
): Promise<void> {
  try {
    const { port, settings, repeated } = readCommandLine(program);
    const cloud = await program.start({ port, settings }, repeated);
    const ended = new Promise<void>((resolve) => {
      process.once('SIGTERM', () => resolve());
      process.once('SIGINT', () => resolve());
    });
    process.stdout.write(`${JSON.stringify({ ...program.describe(cloud), pid: process.pid })}\n`);
    await ended;
    await cloud.close();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

/** Returns the integer value of an option. Throws if it is not a non-negative integer. */
export function integerIn(option: string, text: string): number {
  const value = Number(text);
  if (text === '' || !Number.isInteger(value) || value < 0) {
    throw new Error(`${option} takes an integer, not "${text}"`);
  }
  return value;
}

function readCommandLine<S extends object>({
  settings,
  repeated,
}: Pick<CloudProgram<S, never>, 'settings' | 'repeated'>): {
  readonly port: number;
  readonly settings: Partial<S>;
  readonly repeated: readonly string[];
} {
  const single = Object.fromEntries(
    ['port', ...Object.keys(settings)].map((name) => [name, { type: 'string' as const }]),
  );
  const many = repeated === undefined ? {} : { [repeated]: { type: 'string' as const, multiple: true } };
  const { values } = parseArgs({ options: { ...single, ...many } });
  const numbers = Object.entries(settings).flatMap(([option, key]) => {
    const text = values[option];
    return typeof text === 'string' ? [[key, integerIn(`--${option}`, text)]] : [];
  });
  const given = repeated === undefined ? [] : values[repeated];
  return {
    port: integerIn('--port', typeof values['port'] === 'string' ? values['port'] : '0'),
    settings: Object.fromEntries(numbers) as Partial<S>,
    repeated: Array.isArray(given) ? given.map(String) : [],
  };
}
