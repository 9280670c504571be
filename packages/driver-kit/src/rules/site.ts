import assert from 'node:assert/strict';
import {
  SITE_CHOICES,
  SITE_LIST_MAX,
  stringAt,
  type Driver,
  type JsonObject,
  type SiteChoice,
  type SiteDescription,
  type SiteGuide,
} from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { TestCloud } from '../driver-fixture.js';
import type { RuleGroup } from '../rule.js';
import type { RuleContext } from '../rule-context.js';
import { loadSection } from './configuration.js';

export const site: RuleGroup = {
  title: 'The first configuration',
  text: 'For all drivers with a [`siteGuide`](writing-a-driver.md#the-first-configuration).',
  rules: [
    {
      id: 'site.described',
      since: '1.7',
      title: 'a provider without labels creates nothing, and lists the choices of the guide',
      text:
        'The operator has only looked so far. Lists are short enough to be read, and each name is in them once. A ' +
        'choice that the guide does not have gets no list.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        const found = firstSite(harness.cloud);
        if (found === undefined) return;
        const { guide, driver, cloud } = found;
        const section = await accepted(driver, sectionFor(found, guide.section(cloud.settings)));
        await harness.start(harness.makeOf(section));
        const lists = (await harness.finish(describe(harness.provider, harness.call()))) ?? {};
        for (const [choice, { options }] of entriesOf(lists)) {
          assert.ok(
            guide.choices[choice] !== undefined,
            `the guide has no choice ${choice}, and the cloud a list of it`,
          );
          assert.ok(options.length <= SITE_LIST_MAX, `the list of ${choice} has ${options.length} entries`);
          const names = options.map(({ name }) => name);
          expectEqual([...new Set(names)].length, names.length, `different names in the list of ${choice}`);
          assert.ok(!names.includes(''), `an entry of the list of ${choice} has no name`);
        }
        const made = await harness.cloud.resources?.();
        expectEqual(made ?? [], [], 'resources in the cloud');
      },
    },
    {
      id: 'site.written',
      since: '1.7',
      title: 'the written section is accepted, and serves its label',
      text:
        'The section of the guide, with the first entry of each list that the guide requires, has no problem, and its ' +
        'provider launches a node or declares its machines.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const harness = await context.open();
        const found = firstSite(harness.cloud);
        if (found === undefined) return;
        const { guide, driver, cloud } = found;
        await harness.start(harness.makeOf(sectionFor(found, guide.section(cloud.settings))));
        const lists = (await harness.finish(describe(harness.provider, harness.call()))) ?? {};
        const chosen = { ...firstOf(guide, lists), ...cloud.chosen };
        const label = { name: 'first', username: 'zuul', maxServers: 2, chosen };
        const section = await accepted(driver, sectionFor(found, guide.section(cloud.settings, label)));
        const process = await harness.start(harness.makeOf(section));
        if (context.fixture.supplies === true) assert.ok((process.machines?.length ?? 0) > 0, 'no machine is declared');
        else await harness.launched();
      },
    },
  ],
};

interface FirstSite {
  readonly driver: Driver;
  readonly guide: SiteGuide;
  readonly cloud: NonNullable<TestCloud['site']>;
  readonly name: string;
}

/** Returns undefined if the driver has no guide. Throws if the fixture lacks the settings for one. */
function firstSite(cloud: TestCloud): FirstSite | undefined {
  const driver = cloud.makeDriver();
  if (driver.siteGuide === undefined) return undefined;
  assert.ok(cloud.site !== undefined, 'the driver has a siteGuide, and the fixture of the test no `site` for it');
  return { driver, guide: driver.siteGuide, cloud: cloud.site, name: stringAt(cloud.section, 'name') ?? '' };
}

function sectionFor({ name, driver, cloud }: FirstSite, section: JsonObject): JsonObject {
  return { name, driver: driver.name, ...section, ...cloud.keys };
}

async function accepted(driver: Driver, section: JsonObject): Promise<JsonObject> {
  const { problems, broken } = await loadSection(driver, section);
  expectEqual([...problems, ...broken], [], 'problems of the written section');
  return section;
}

async function describe(
  provider: RuleProvider,
  call: Parameters<NonNullable<RuleProvider['describeSite']>>[0],
): Promise<SiteDescription | undefined> {
  return provider.describeSite?.(call);
}

type RuleProvider = ReturnType<Driver['getProvider']>;

function firstOf(guide: SiteGuide, lists: SiteDescription): Partial<Record<SiteChoice, string>> {
  const chosen: Partial<Record<SiteChoice, string>> = {};
  for (const choice of SITE_CHOICES) {
    const need = guide.choices[choice];
    const first = lists[choice]?.options[0]?.name;
    if (first !== undefined && need !== undefined && need !== 'optional') chosen[choice] = first;
  }
  return chosen;
}

function entriesOf(
  lists: SiteDescription,
): readonly (readonly [SiteChoice, NonNullable<SiteDescription[SiteChoice]>])[] {
  return SITE_CHOICES.flatMap((choice) => {
    const list = lists[choice];
    return list === undefined ? [] : [[choice, list] as const];
  });
}
