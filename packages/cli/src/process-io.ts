/** Dependencies of the program on its process; tests replace them. */

import type { Readable, Writable } from 'node:stream';
import type { Clock, RandomSource } from '@nodepool/core';
import type { OutputConfiguration } from 'commander';
import type { ConnectOptions } from '@nodepool/store';
import type { ZooKeeperConfig } from '@nodepool/config';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { Ask, Output } from './command-context.js';
import type { ColorChoice, TerminalSize } from './display.js';

/** The standard streams of the process, for commands that pass data through. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Returns the output of a program's help and usage errors, for `configureOutput`. */
export function programOutput({ stdout, stderr }: Pick<Streams, 'stdout' | 'stderr'>): OutputConfiguration {
  return { writeOut: (text) => void stdout.write(text), writeErr: (text) => void stderr.write(text) };
}

export interface ProcessIo {
  readonly out: Output;
  /** Default: those of this process. */
  readonly streams?: Streams;
  /** Absent if stdout is not a terminal. */
  readonly terminal?: Terminal | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts with the first SIGINT or SIGTERM. */
  readonly interrupted: AbortSignal;
  /** Default: not interactive. */
  readonly ask?: Ask | undefined;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly random?: RandomSource;
  /** Default: `connectToZooKeeper` of `@nodepool/core`. */
  readonly connect?: (config: ZooKeeperConfig, options: ConnectOptions) => Promise<ZooKeeper>;
}

export interface Terminal {
  size(): TerminalSize;
  /** Replaces everything that it shows. */
  redraw(text: string): void;
}

export interface CommonOptions {
  readonly config: string;
  readonly secure?: string;
  readonly loggingConfig?: string;
  readonly debug?: boolean;
  /** Seconds. */
  readonly connectTimeout: number;
  readonly color: ColorChoice;
}
