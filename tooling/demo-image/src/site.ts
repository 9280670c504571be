/** The configurations of the builder and the launcher. */

import { dirname, join } from 'node:path';
import type { Cloud } from './cloud.js';

/** Name of the disk image, and of the label that uses it. */
export const IMAGE = 'debian-minimal';
export const PROVIDER = 'demo-image';

export interface SiteOptions {
  readonly folder: string;
  /** `host:port` of ZooKeeper. */
  readonly zooKeeper: string;
  readonly cloud: Cloud;
  readonly flavor: string;
  readonly network: string;
  /** Debian mirror for the image. */
  readonly mirror: string | undefined;
}

/** Settings that change while the builder runs. */
export interface BuilderChanges {
  /** Default: `disk-image-create` of diskimage-builder. */
  readonly dibCmd?: string;
  /** True if uploads of the image to the provider are paused. */
  readonly pauseUploads?: boolean;
}

export function imagesDir(folder: string): string {
  return join(folder, 'images');
}

export function buildLogDir(folder: string): string {
  return join(folder, 'builds');
}

export function builderConfig(site: SiteOptions, { dibCmd, pauseUploads = false }: BuilderChanges): object {
  const { folder, mirror } = site;
  const fromMirror =
    mirror === undefined
      ? {}
      : { DIB_DISTRIBUTION_MIRROR: mirror, DIB_APT_SOURCES_CONF: `default:deb ${mirror} bookworm main` };
  return {
    ...common(site),
    'images-dir': imagesDir(folder),
    'build-log-dir': buildLogDir(folder),
    labels: [],
    diskimages: [
      {
        name: IMAGE,
        elements: ['debian-minimal'],
        release: 'bookworm',
        // In addition to qcow2, which the cloud requires.
        formats: ['raw'],
        username: 'debian',
        'env-vars': { ...fromMirror, TMP_DIR: join(folder, 'tmp') },
        ...(dibCmd === undefined ? {} : { 'dib-cmd': dibCmd }),
      },
    ],
    providers: [{ ...provider(site), diskimages: [{ name: IMAGE, pause: pauseUploads }], pools: [] }],
  };
}

export function launcherConfig(site: SiteOptions, webappPort: number): object {
  const pool = {
    name: 'main',
    'max-servers': 2,
    networks: [site.network],
    'auto-floating-ip': false,
    // A cloud without a hypervisor has no guest at the address.
    'host-key-checking': false,
    labels: [{ name: IMAGE, diskimage: IMAGE, 'flavor-name': site.flavor }],
  };
  return {
    ...common(site),
    webapp: { port: webappPort, listen_address: '127.0.0.1' },
    labels: [{ name: IMAGE, 'min-ready': 0 }],
    diskimages: [{ name: IMAGE, username: 'debian' }],
    providers: [{ ...provider(site), diskimages: [{ name: IMAGE }], pools: [pool] }],
  };
}

function common({ zooKeeper }: SiteOptions): object {
  const [host, port] = zooKeeper.split(':');
  return {
    'zookeeper-servers': [{ host, port: Number(port) }],
    // Path in this workspace. Sites install the driver next to the launcher.
    drivers: [{ name: 'openstack', package: dirname(require.resolve('@nodepool/driver-openstack/package.json')) }],
  };
}

function provider({ cloud }: SiteOptions): object {
  return { name: PROVIDER, driver: 'openstack', cloud: cloud.name, rate: 0.05 };
}
