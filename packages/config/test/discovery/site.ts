/** A site's folder with installed packages. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { DriverSearch } from '@nodepool/config';

export const DRIVER_BODY = `{
  name: 'NAME',
  schema: { type: 'object' },
  getProviderConfig() { throw new Error('unused'); },
  getProvider() { throw new Error('unused'); },
}`;

export class Site {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'nodepool-site-')));

  write(file: string, text: string): string {
    const path = join(this.path, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  /** Creates a package in `folder`, e.g. `node_modules/x`, with package.json and one file. */
  package(folder: string, manifest: object, file = 'index.js', code = ''): string {
    this.write(join(folder, 'package.json'), JSON.stringify({ version: '1.2.3', ...manifest }));
    this.write(join(folder, file), code);
    return join(this.path, folder);
  }

  /** Creates a driver as a CommonJS package. */
  driver(folder: string, packageName: string, name: string, extra: object = {}): string {
    const code = `exports.driver = ${DRIVER_BODY.replace('NAME', name)};`;
    return this.package(folder, { name: packageName, nodepool: { driver: name, api: 1 }, ...extra }, 'index.js', code);
  }

  link(from: string, to: string): void {
    mkdirSync(dirname(join(this.path, from)), { recursive: true });
    symlinkSync(join(this.path, to), join(this.path, from));
  }

  search(options: Partial<DriverSearch> = {}): DriverSearch {
    return { aliases: new Map(), configFolder: join(this.path, 'etc'), folders: [this.path], ...options };
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
