/** The scale set in GitHub: found, created, or changed to what the settings say. */

import type { Logger } from '@nodepool/core';
import type { ActionsService, ScaleSetSpec } from '../github/actions-service.js';
import type { ScaleSetDocument } from '../github/documents.js';
import { isConflict } from '../github/errors.js';
import type { ScaleSetSettings } from '../settings/settings.js';

/** Resolves with the scale set of the settings in GitHub. */
export async function registeredScaleSet(
  service: ActionsService,
  { name, labels, runnerGroup }: ScaleSetSettings,
  log: Logger,
  signal: AbortSignal,
): Promise<ScaleSetDocument> {
  const spec: ScaleSetSpec = { name, labels, groupId: await service.groupId(runnerGroup, signal) };
  const found = (await service.findScaleSet(spec, signal)) ?? (await created(service, spec, log, signal));
  if (found.disableUpdate && sameLabels(found.labels, labels)) return found;
  log.info('Changing the scale set in GitHub', { id: found.id, labels });
  return await service.updateScaleSet(found.id, spec, signal);
}

async function created(
  service: ActionsService,
  spec: ScaleSetSpec,
  log: Logger,
  signal: AbortSignal,
): Promise<ScaleSetDocument> {
  try {
    const scaleSet = await service.createScaleSet(spec, signal);
    log.info('Created the scale set in GitHub', { id: scaleSet.id, labels: spec.labels });
    return scaleSet;
  } catch (error) {
    // An earlier attempt has created it, whose answer was lost.
    const found = isConflict(error) ? await service.findScaleSet(spec, signal) : undefined;
    if (found === undefined) throw error;
    return found;
  }
}

function sameLabels(a: readonly string[], b: readonly string[]): boolean {
  const sorted = (labels: readonly string[]): string => JSON.stringify(labels.map((each) => each.toLowerCase()).sort());
  return sorted(a) === sorted(b);
}
