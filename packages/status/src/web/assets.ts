/** The files of the status page. All of them are in the package; the page loads nothing from other sites. */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasonOf } from '@nodepool/core';

export interface Asset {
  readonly type: string;
  readonly body: Buffer;
  /** The value of the `ETag` header, including the quotes. */
  readonly etag: string;
}

const PACKAGE_FOLDER = join(__dirname, '../..');
/** Folder of the page itself, its style sheet and its icon. */
const PAGE_FOLDER = join(PACKAGE_FOLDER, 'assets/status');
/** Folder of the compiled scripts from `client/`. */
const SCRIPT_FOLDER = join(PACKAGE_FOLDER, 'dist/client');

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=UTF-8',
  css: 'text/css; charset=UTF-8',
  svg: 'image/svg+xml',
  js: 'text/javascript; charset=UTF-8',
};

/** Returns the files by name. Throws an error that names the folder if one is missing. */
export function loadAssets(): ReadonlyMap<string, Asset> {
  const assets = new Map<string, Asset>();
  for (const folder of [PAGE_FOLDER, SCRIPT_FOLDER]) {
    for (const name of namesIn(folder)) {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)];
      if (type === undefined) continue;
      const body = readFileSync(join(folder, name));
      assets.set(name, { type, body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` });
    }
  }
  return assets;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw new Error(
      `the files of the status page are not in ${folder} (${reasonOf(error)}); install @nodepool/status again, or build it`,
      { cause: error },
    );
  }
}
