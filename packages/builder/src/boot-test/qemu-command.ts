/** The command line of QEMU for a boot test. */

import type { BootTestConfig } from '@nodepool/core';
import type { DiskImageFile } from '../disk-image-files.js';

/** Formats that QEMU reads, by the names of diskimage-builder; the first that a build has is booted. */
const QEMU_FORMATS: readonly (readonly [format: string, driver: string])[] = [
  ['qcow2', 'qcow2'],
  ['raw', 'raw'],
  ['vhdx', 'vhdx'],
  ['vhd', 'vpc'],
  ['vmdk', 'vmdk'],
];

/** Programs by the architecture of this process. */
const PROGRAMS: Readonly<Record<string, string>> = { x64: 'qemu-system-x86_64' };

/** Returns QEMU's program for machines like this one; undefined if their firmware is not supported. */
export function qemuProgram(arch: string = process.arch): string | undefined {
  return PROGRAMS[arch];
}

/** Returns the file to boot and QEMU's name of its format; undefined if QEMU reads none. */
export function bootableFile(
  files: readonly DiskImageFile[],
): { readonly file: DiskImageFile; readonly driver: string } | undefined {
  for (const [format, driver] of QEMU_FORMATS) {
    const file = files.find((each) => each.format === format);
    if (file !== undefined) return { file, driver };
  }
  return undefined;
}

export type Accelerator = 'kvm' | 'tcg';

export interface Machine {
  readonly path: string;
  readonly driver: string;
  readonly seed: string;
  /** Port of this host that is forwarded to the ssh server of the machine. */
  readonly port: number;
  readonly accelerator: Accelerator;
  readonly config: Pick<BootTestConfig, 'memory' | 'cpus'>;
}

/**
 * Returns the arguments. The machine changes a temporary copy of the image, and reaches no network: only this host
 * reaches its ssh server.
 */
export function qemuArguments({ path, driver, seed, port, accelerator, config }: Machine): readonly string[] {
  const { memory, cpus } = config;
  return [
    ...['-no-user-config', '-nodefaults', '-display', 'none', '-monitor', 'none', '-serial', 'stdio', '-no-reboot'],
    ...['-machine', 'pc', '-accel', accelerator, '-cpu', 'max', '-m', String(memory), '-smp', String(cpus)],
    // The time of an emulated machine follows its instructions: on a busy host, its kernel would see timeouts.
    ...(accelerator === 'tcg' ? ['-icount', 'shift=3'] : []),
    ...['-drive', `file=${escaped(path)},format=${driver},if=virtio,snapshot=on`],
    ...['-drive', `driver=vvfat,dir=${escaped(seed)},label=CIDATA,if=virtio,read-only=on`],
    ...['-netdev', `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:22`],
    ...['-device', 'virtio-net-pci,netdev=net', '-device', 'virtio-rng-pci'],
  ];
}

/** Escapes a text in a list of options. */
function escaped(text: string): string {
  return text.replaceAll(',', ',,');
}
