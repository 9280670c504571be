/** Descriptions from what launchers answer: reasons, health, answers of pools, timelines and decisions. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { ageColumn, formatAge, createRecordList, type ListColumn, type RecordList } from '@nodepool/store';
import type { DescribedKind, Description, Section } from './description.js';

export interface LauncherDocument {
  readonly launcher: string;
  readonly document: JsonObject;
}

/** A row of a table: members of a document, with the launcher that they come from. */
interface Row {
  readonly launcher: string;
  readonly value: JsonObject;
}

type Column = ListColumn<Row>;

/** Describes a subject by the answers of launchers to `/explain/...`, at least one. */
export function describeExplanations(
  kind: DescribedKind,
  name: string,
  explanations: readonly LauncherDocument[],
  now: number,
): Description {
  const documents = explanations.map(({ launcher, document }) => ({ launcher, document: asStatus(document) }));
  const facts = Object.entries(objectIn(byKnowledge(documents)[0]?.document['facts']));
  return {
    kind,
    name,
    summary: launcherSummary(documents) ?? '',
    facts: facts.map(([field, value]) => ({ field, title: field, value })),
    sections: launcherSections(kind, documents, now),
  };
}

/** Returns the explanation with the names of status documents. */
function asStatus({ pools, timeline, ...others }: JsonObject): JsonObject {
  const phases = objectsIn(timeline).map(({ seconds, lasts, ...phase }) => ({
    ...phase,
    to: lasts === true ? null : Number(phase['from']) + Number(seconds),
  }));
  return { ...others, poolAnswers: pools ?? [], timeline: phases };
}

/** Returns the summary of the launcher that has recorded most of the subject. */
export function launcherSummary(documents: readonly LauncherDocument[]): string | undefined {
  return byKnowledge(documents)
    .map(({ document }) => document['summary'])
    .find((summary): summary is string => typeof summary === 'string' && summary !== '');
}

/** Returns the summaries of the other launchers that have decided about the subject and say something else. */
function otherSummaries(documents: readonly LauncherDocument[]): readonly Row[] {
  const best = launcherSummary(documents);
  return documents
    .filter(({ document: { summary, decisions } }) => {
      return typeof summary === 'string' && objectsIn(decisions).length > 0 && best?.startsWith(summary) === false;
    })
    .map(({ launcher, document }) => ({ launcher, value: document }));
}

/**
 * Returns the documents in the order of the numbers of decisions and phases that the launchers recorded themselves;
 * those of launchers that have not seen the end come last.
 */
function byKnowledge(documents: readonly LauncherDocument[]): readonly LauncherDocument[] {
  const knowledge = ({ document: { decisions, timeline } }: LauncherDocument): number =>
    objectsIn(decisions).length + recordedPhases(objectsIn(timeline));
  const isUnseen = ({ document: { request, facts } }: LauncherDocument): boolean =>
    objectIn(request)['state'] === 'unseen' || objectIn(facts)['result'] === 'unseen';
  return [...documents].sort((a, b) => Number(isUnseen(a)) - Number(isUnseen(b)) || knowledge(b) - knowledge(a));
}

function recordedPhases(timeline: readonly JsonObject[]): number {
  return timeline.filter(({ phase }) => phase !== 'elsewhere').length;
}

/** Removes what launchers say about the pools and providers of others, if those others say it themselves. */
function firstHand(rows: readonly Row[], field: 'phase' | 'state', subject: string): readonly Row[] {
  const isForeign = ({ value }: Row): boolean => value[field] === 'elsewhere';
  const known = new Set(rows.filter((row) => !isForeign(row)).map(({ value }) => value[subject]));
  return rows.filter((row) => !isForeign(row) || !known.has(row.value[subject]));
}

/** Returns the sections, without members that a launcher does not send. `now` is in milliseconds since the epoch. */
export function launcherSections(
  kind: DescribedKind,
  documents: readonly LauncherDocument[],
  now: number,
): readonly Section[] {
  const rows = (pick: (document: JsonObject) => JsonValue | undefined): readonly Row[] =>
    documents.flatMap(({ launcher, document }) => objectsIn(pick(document)).map((value) => ({ launcher, value })));
  const subject = (document: JsonObject): JsonObject => objectIn(document[kind]);
  const timeline = fullestTimeline(documents);
  const table = (columns: readonly Column[], of: readonly Row[]): RecordList => createRecordList(columns, 'all', of);
  return [
    {
      field: 'summaries',
      title: 'Other launchers',
      list: table([FROM, member('summary', 'Summary')], otherSummaries(documents)),
    },
    {
      field: 'reasons',
      title: 'Waits for',
      list: table(
        reasonColumns(now),
        firstHand(
          rows((document) => [document['reason'] ?? null, subject(document)['reason'] ?? null]),
          'phase',
          'pool',
        ),
      ),
    },
    {
      field: 'health',
      title: 'Health',
      list: table(
        healthColumns(now),
        kind === 'provider'
          ? firstHand(
              rows((document) => document['provider']),
              'state',
              'name',
            )
          : [],
      ),
    },
    {
      field: 'answers',
      title: 'Answers of pools',
      list: table(
        [member('pool', 'Pool'), member('says', 'Answer'), member('launcher', 'Launcher')],
        poolAnswers(documents),
      ),
    },
    {
      field: 'usage',
      title: 'Use of limits',
      list: table(usageColumns(), rows((document) => subject(document)['usage']).slice(0, MAX_ROWS)),
    },
    {
      field: 'failures',
      title: 'Failures of launches',
      list: table(
        failureColumns(now),
        rows((document) => subject(document)['failures']),
      ),
    },
    { field: 'timeline', title: 'Timeline', list: table(segmentColumns(now), timeline) },
    {
      field: 'decisions',
      title: 'Decisions',
      list: table(
        decisionColumns(now),
        rows((document) => document['decisions']).toSorted((a, b) => Number(a.value['last']) - Number(b.value['last'])),
      ),
    },
  ];
}

const MAX_ROWS = 20;

/**
 * Returns each answer once; about a pool, only that of its own launcher if that has answered. Status documents do not
 * mark answers about pools of others: the list of registered pools has these.
 */
function poolAnswers(documents: readonly LauncherDocument[]): readonly Row[] {
  const keyOf = (...parts: readonly (JsonValue | undefined)[]): string => JSON.stringify(parts);
  const all = documents.flatMap(({ launcher, document }) =>
    objectsIn(document['poolAnswers']).map((value) => ({
      launcher,
      value,
      own: value['own'] === true || value['launcher'] === objectIn(document['launcher'])['hostname'],
      pool: keyOf(value['pool'], value['launcher']),
    })),
  );
  const answered = new Set(all.filter(({ own }) => own).map(({ pool }) => pool));
  const kept = all.filter(({ own, pool, value }) => own || (value['own'] === false && !answered.has(pool)));
  return [...new Map(kept.map((row) => [keyOf(row.pool, row.value['says']), row])).values()];
}

/** Returns the timeline of the subject and its nodes from the launcher that recorded most of it. */
function fullestTimeline(documents: readonly LauncherDocument[]): readonly Row[] {
  const timelines = documents.map(({ launcher, document }) => {
    const own = objectsIn(document['timeline']).map((value) => ({ launcher, value }));
    const nodes = objectsIn(document['nodes']).flatMap(({ node, timeline }) =>
      objectsIn(timeline).map((value) => ({ launcher, value: { ...value, node: objectIn(node)['id'] ?? null } })),
    );
    return [...own, ...nodes];
  });
  const recorded = (rows: readonly Row[]): number => recordedPhases(rows.map(({ value }) => value));
  return timelines.reduce<readonly Row[]>(
    (best, rows) => (recorded(rows) > recorded(best) || best.length === 0 ? rows : best),
    [],
  );
}

function reasonColumns(now: number): readonly Column[] {
  return [
    member('phase', 'For'),
    age('since', 'Since', now),
    member('pool', 'Next pool'),
    member('text', 'Reason'),
    member('missing', 'Missing'),
    FROM,
  ];
}

function healthColumns(now: number): readonly Column[] {
  return [
    member('state', 'State'),
    age('since', 'Since', now),
    member('reason', 'Reason'),
    { field: 'last_error', header: 'Last error', value: ({ value }) => objectIn(value['lastError'])['text'] ?? null },
    FROM,
  ];
}

function usageColumns(): readonly Column[] {
  return [member('resource', 'Resource'), member('used', 'Used'), member('limit', 'Limit'), FROM];
}

function failureColumns(now: number): readonly Column[] {
  return [member('code', 'Result'), member('count', 'Count'), age('last', 'Last', now), member('text', 'Text'), FROM];
}

function segmentColumns(now: number): readonly Column[] {
  return [
    { ...member('from', 'From (UTC)'), text: timeText },
    member('phase', 'Phase'),
    {
      field: 'seconds',
      header: 'Duration',
      value: ({ value: { from, to } }) =>
        typeof from === 'number' ? (typeof to === 'number' ? to : now / 1000) - from : null,
      text: (seconds) => (typeof seconds === 'number' ? durationText(seconds) : ''),
    },
    { field: 'failed', header: 'Failed', value: ({ value }) => (value['failed'] === true ? 'yes' : null) },
    member('node', 'Node'),
    member('by', 'By'),
    member('detail', 'Detail'),
  ];
}

function decisionColumns(now: number): readonly Column[] {
  return [
    age('last', 'Age', now),
    member('by', 'By'),
    member('decision', 'Decision'),
    member('reason', 'Reason'),
    member('times', 'Times'),
    FROM,
  ];
}

const FROM: Column = { field: 'launcher', header: 'Launcher', value: ({ launcher }) => launcher };

function member(field: string, header: string): Column {
  return { field, header, value: ({ value }) => value[field] ?? null };
}

function age(field: string, header: string, now: number): Column {
  return ageColumn(field, header, now, ({ value }) => {
    const time = value[field];
    return typeof time === 'number' ? time : null;
  });
}

function timeText(seconds: JsonValue): string {
  return typeof seconds === 'number' ? new Date(seconds * 1000).toISOString().replace('T', ' ').slice(0, 19) : '';
}

/** Phases are often shorter than a second, which the form of ages does not show. */
function durationText(seconds: number): string {
  return seconds < 60 ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : formatAge(seconds);
}

function objectIn(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  if (Array.isArray(value)) return value.filter(isJsonObject);
  return isJsonObject(value) ? [value] : [];
}
