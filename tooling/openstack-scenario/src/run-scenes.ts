/** Runs scenes on a cloud. */

import { createRecordList, toTable, type ListColumn } from '@nodepool/store';
import type { ScenarioCloud } from './cloud.js';
import { scenes, type Row, type Sizes } from './scenes.js';
import { Site } from './site.js';

export interface ScenarioOptions {
  readonly cloud: ScenarioCloud;
  readonly sizes: Sizes;
  /** Names of scenes. Default: all. */
  readonly only?: readonly string[];
  readonly say: (line: string) => void;
}

export const FULL_SIZES: Sizes = { nodes: 60, equipped: 10, limited: 10, killed: 30, restarted: 20, regions: 100 };
export const SMALL_SIZES: Sizes = { nodes: 20, equipped: 4, limited: 6, killed: 10, restarted: 8, regions: 20 };

/**
 * Resolves with the measured rows, scene by scene. A failed scene becomes a row with the reason, and the next scenes
 * still run.
 */
export async function runScenes({ cloud, sizes, only, say }: ScenarioOptions): Promise<Row[]> {
  const site = await Site.start(cloud.cloudsYaml);
  const rows: Row[] = [];
  try {
    for (const scene of scenes) {
      if (only !== undefined && !only.includes(scene.name)) continue;
      say(`${scene.name}: ${scene.title(sizes)}`);
      try {
        rows.push(...(await scene.run({ site, cloud, sizes, say })));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        say(`${scene.name} failed: ${why}`);
        rows.push({
          scene: scene.name,
          subject: scene.title(sizes),
          measured: `failed: ${why.split('\n')[0] ?? ''}`,
          target: '',
          met: false,
        });
      }
    }
    return rows;
  } finally {
    const failed = rows.some(({ met }) => !met);
    if (failed) say(`configurations and logs are kept in ${site.folder}`);
    await site.stop(failed);
  }
}

const COLUMNS: readonly ListColumn<Row>[] = [
  { field: 'scene', header: 'Scene', value: ({ scene }) => scene },
  { field: 'subject', header: 'Subject', value: ({ subject }) => subject },
  { field: 'measured', header: 'Measured', value: ({ measured }) => measured },
  { field: 'target', header: 'Target', value: ({ target }) => target },
  { field: 'verdict', header: '', value: ({ target, met }) => (target === '' && met ? '' : met ? 'met' : 'MISSED') },
];

export function tableOf(rows: readonly Row[]): string {
  return toTable(createRecordList(COLUMNS, 'all', rows));
}
