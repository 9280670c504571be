/** A Prometheus of Debian that scrapes programs every second, and evaluates the shipped rules. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Program } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';

const WAIT_LIMIT_MS = 120_000;

/** The member `data` of an answer. */
export interface PrometheusData {
  readonly activeTargets?: readonly {
    readonly health: string;
    readonly lastError: string;
    readonly scrapeUrl: string;
  }[];
  readonly groups?: readonly { readonly rules: readonly { readonly health: string; readonly name: string }[] }[];
  readonly result?: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: [number, string];
  }[];
  readonly alerts?: readonly {
    readonly state: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  }[];
}

export interface PrometheusOptions {
  readonly folder: string;
  readonly port: number;
  /** The programs as `host:port`. */
  readonly targets: readonly string[];
  /** File with the rules. */
  readonly rules: string;
}

export class Prometheus {
  private constructor(
    readonly program: Program,
    private readonly port: number,
  ) {}

  static async start({ folder, port, targets, rules }: PrometheusOptions): Promise<Prometheus> {
    const file = join(folder, 'prometheus.json');
    const scrape = { job_name: 'nodepool', scrape_interval: '1s', static_configs: [{ targets }] };
    // JSON is valid YAML.
    writeFileSync(
      file,
      JSON.stringify({ global: { evaluation_interval: '1s' }, rule_files: [rules], scrape_configs: [scrape] }),
    );
    const program = await Program.start({
      name: 'prometheus',
      command: '/usr/bin/prometheus',
      args: [
        `--config.file=${file}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      logFile: join(folder, 'prometheus.log'),
    });
    await program.while('is ready', WAIT_LIMIT_MS, async (signal) => {
      while (!readFileSync(program.logFile, 'utf8').includes('Server is ready')) await sleep(systemClock, 50, signal);
    });
    return new Prometheus(program, port);
  }

  /** Queries Prometheus until the answer suffices. */
  ask(path: string, suffices: (answer: PrometheusData) => boolean): Promise<PrometheusData> {
    return this.program.while(`answers ${path}`, WAIT_LIMIT_MS, async (signal) => {
      for (;;) {
        const url = `http://127.0.0.1:${this.port}/api/v1/${path}`;
        const response = await fetch(url, { headers: { Connection: 'close' } });
        const { data } = (await response.json()) as { readonly data: PrometheusData };
        if (suffices(data)) return data;
        await sleep(systemClock, 200, signal);
      }
    });
  }
}
