/** The programs of the control plane: given ones, or built from Debian's source package. */

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { Program } from '@nodepool/harness';

/** Folder with `kube-apiserver`, `kube-controller-manager` and, unless it is in PATH, `etcd`. */
const BINARIES_VARIABLE = 'KUBERNETES_BINARIES';
/** The build takes 8 minutes of one core on an idle machine (ms). */
const BUILD_TIMEOUT_MS = 7_200_000;

export interface Binaries {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
}

/** Resolves with the programs; with the reason if one of them is missing and cannot be built. */
export async function findBinaries(say: (line: string) => void, interrupted: AbortSignal): Promise<Binaries | string> {
  const given = process.env[BINARIES_VARIABLE];
  const built = join(__dirname, '..', 'bin');
  const folder = given ?? built;
  const apiServer = join(folder, 'kube-apiserver');
  const controllerManager = join(folder, 'kube-controller-manager');
  const etcd = [join(folder, 'etcd'), ...inPath('etcd')].find(existsSync);
  if (etcd === undefined) return 'there is no etcd: apt-get install etcd-server';
  if (!existsSync(apiServer) || !existsSync(controllerManager)) {
    if (given !== undefined) return `${given} has no kube-apiserver and kube-controller-manager`;
    if (inPath('apt-get').every((path) => !existsSync(path))) {
      return `there is no apt-get to build Kubernetes; set ${BINARIES_VARIABLE} to a folder with its programs`;
    }
    say(`building kube-apiserver and kube-controller-manager in ${built}`);
    await build(built, interrupted);
  }
  return { etcd, apiServer, controllerManager };
}

function inPath(command: string): string[] {
  return (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, command));
}

async function build(folder: string, interrupted: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true });
  const builder = await Program.start({
    name: 'the build of Kubernetes',
    command: join(__dirname, '..', 'build.sh'),
    args: [folder],
    logFile: join(folder, 'build.log'),
  });
  const { code } = await builder.ends(BUILD_TIMEOUT_MS, interrupted);
  if (code !== 0) throw new Error(`the build of Kubernetes failed; see ${builder.logFile}`);
}
