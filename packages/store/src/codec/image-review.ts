/** Reads the review of an upload. A review that cannot be read must not make its upload trusted. */

import { IMAGE_STAGES, type CanaryTrial, type ImageReview, type StageChange, type TrialArm } from '@nodepool/core';
import { number, object, oneOf, text, type RawField } from './fields.js';

/**
 * Returns the review; null if there is none. An unreadable one, or one of an unknown stage, is read as rejected, so
 * that no request gets an image whose tests are unknown.
 */
export function review(raw: RawField): ImageReview | null {
  if (raw === undefined || raw === null) return null;
  const fields = object(raw);
  const stage = oneOf(fields?.stage, IMAGE_STAGES);
  if (fields === null || stage === undefined) {
    const reason = 'the field "review" of the record cannot be read';
    return { stage: 'rejected', since: 0, by: 'nodepool', reason, history: [] };
  }
  const pin = object(fields.pinned);
  const trial = object(fields.trial);
  const promoted = number(fields.promoted);
  return {
    ...change(fields, stage),
    stage,
    ...(promoted === null ? {} : { promoted }),
    ...(pin === null ? {} : { pinned: { by: text(pin.by) ?? '', since: number(pin.since) ?? 0 } }),
    ...(trial === null ? {} : { trial: trialOf(trial) }),
    history: listOf(fields.history).flatMap((each) => {
      const entry = object(each);
      return entry === null ? [] : [change(entry, text(entry.stage) ?? '')];
    }),
  };
}

type Fields = Readonly<Record<string, RawField>>;

function change(fields: Fields, stage: string): StageChange {
  return { stage, since: number(fields.since) ?? 0, by: text(fields.by) ?? '', reason: text(fields.reason) ?? '' };
}

function trialOf(fields: Fields): CanaryTrial {
  return {
    began: number(fields.began) ?? 0,
    candidate: arm(fields.candidate),
    current: arm(fields.current),
    judged: number(fields.judged) ?? 0,
    evidence: Object.fromEntries(
      Object.entries(object(fields.evidence) ?? {}).map(([name, values]) => [
        name,
        listOf(values).flatMap((value) => (typeof value === 'number' ? [value] : [])),
      ]),
    ),
    times: numbersOf(fields.times),
    counted: numbersOf(fields.counted),
  };
}

function arm(raw: RawField): TrialArm {
  const { launches, failed_launches, slow_launches, jobs, failed_jobs }: Fields = object(raw) ?? {};
  return {
    launches: number(launches) ?? 0,
    failed_launches: number(failed_launches) ?? 0,
    slow_launches: number(slow_launches) ?? 0,
    jobs: number(jobs) ?? 0,
    failed_jobs: number(failed_jobs) ?? 0,
  };
}

function numbersOf(raw: RawField): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(object(raw) ?? {}).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  );
}

function listOf(raw: RawField): readonly RawField[] {
  return Array.isArray(raw) ? (raw as readonly RawField[]) : [];
}
