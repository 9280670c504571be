/** Checks the space of the builder's folders, if they are on this machine. */

import { statfs } from 'node:fs/promises';
import { fileFaultOf } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { Findings, type Finding } from './finding.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
/** A disk image and its conversions take tens of GiB. */
const SHORT_IMAGES_GIB = 50;
const SHORT_LOGS_GIB = 1;
/** Below this share of free space or inodes, a disk counts as short. */
const SHORT_SHARE = 0.05;

/** `hasBuilder`: true if a builder is registered on this machine; undefined if that is unknown. */
export async function checkDisk(
  { imagesDir, buildLogDir }: Pick<NodepoolConfig, 'imagesDir' | 'buildLogDir'>,
  hasBuilder: boolean | undefined,
): Promise<readonly Finding[]> {
  const findings = new Findings('disk');
  if (imagesDir !== undefined) await checkFolder(findings, 'images-dir', imagesDir, SHORT_IMAGES_GIB, hasBuilder);
  // It has a default, which no builder uses without images.
  if (imagesDir === undefined && hasBuilder !== true) return findings.list;
  await checkFolder(findings, 'build-log-dir', buildLogDir, SHORT_LOGS_GIB, hasBuilder);
  return findings.list;
}

/** Returns a size in the largest unit that shows at least two digits. */
export function sizeText(bytes: number): string {
  if (bytes >= 10 * GIB) return `${Math.floor(bytes / GIB)} GiB`;
  return bytes >= 10 * MIB ? `${Math.floor(bytes / MIB)} MiB` : `${Math.floor(bytes / KIB)} KiB`;
}

async function checkFolder(
  findings: Findings,
  key: string,
  folder: string,
  shortGib: number,
  hasBuilder: boolean | undefined,
): Promise<void> {
  const name = `${key} ${folder}`;
  try {
    const { bavail, blocks, bsize, files, ffree } = await statfs(folder);
    const free = bavail * bsize;
    const text = `${sizeText(free)} of ${sizeText(blocks * bsize)} are free`;
    const remedy = 'delete old files, or enlarge the disk; `nodepool dib-image-list` shows the builds that take space';
    if (free === 0) findings.error(name, text, remedy);
    else if (free < shortGib * GIB || bavail < blocks * SHORT_SHARE) findings.warning(name, text, remedy);
    else if (files > 0 && ffree < files * SHORT_SHARE)
      findings.warning(name, `${ffree} of ${files} inodes are free`, remedy);
    else findings.ok(name, text);
  } catch (error) {
    if (hasBuilder)
      findings.error(name, `cannot be examined: ${fileFaultOf(error, 'folder')}`, 'create the folder for the builder');
    else if (hasBuilder === undefined) findings.info(name, 'is not on this machine');
    else findings.info(name, 'is not on this machine, on which no builder is registered');
  }
}
