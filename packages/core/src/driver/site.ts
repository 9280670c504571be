/**
 * The part of a driver that `nodepool init` uses to write a first configuration: the settings of an account, the lists
 * of a cloud to choose from, and the section for the choices.
 */

import type { JsonObject } from '../model/json.js';

/** The kinds of things that a first configuration chooses from a cloud. */
export const SITE_CHOICES = ['zone', 'machine-type', 'image', 'network'] as const;
export type SiteChoice = (typeof SITE_CHOICES)[number];

/** An entry of a list of the cloud. */
export interface SiteOption {
  /** The value that the configuration contains if this entry is chosen. */
  readonly name: string;
  /** Properties that help to choose, e.g. `2 cores, 4096 MiB`. */
  readonly note?: string | undefined;
}

export interface SiteList {
  /** The entries, those that suit a first try best at the beginning. */
  readonly options: readonly SiteOption[];
  /** True if the cloud accepts further values, e.g. images of other accounts. */
  readonly partial?: boolean | undefined;
}

/** The lists of a cloud; those that it does not have are absent. */
export type SiteDescription = Readonly<Partial<Record<SiteChoice, SiteList>>>;

/** A key of a provider's section that is needed before the cloud can be contacted. */
export interface SiteSetting {
  readonly key: string;
  /** The noun phrase that `nodepool init` asks for, e.g. `name of the cloud in clouds.yaml`. */
  readonly question: string;
  /** True if the section can lack the key. */
  readonly optional?: boolean | undefined;
  /** True for a public key: the answer may be the path of its `.pub` file. */
  readonly publicKey?: boolean | undefined;
}

/** The first label of a site, and what was chosen for it. */
export interface FirstLabel {
  readonly name: string;
  /** User name for logins. */
  readonly username: string;
  /** Maximum number of its nodes. */
  readonly maxServers: number;
  readonly chosen: Readonly<Partial<Record<SiteChoice, string>>>;
}

/** How `nodepool init` writes the first section of a driver. */
export interface SiteGuide {
  readonly settings: readonly SiteSetting[];
  /**
   * The choices of the driver. `if-listed` is required if the cloud lists any entries. One that is optional is left out
   * of the section unless it was given.
   */
  readonly choices: Readonly<Partial<Record<SiteChoice, 'required' | 'if-listed' | 'optional'>>>;
  /**
   * Returns a section of `providers` without `name` and `driver`. Without a label, it is one that can only be started
   * and described; the provider then creates nothing in the cloud.
   */
  section(settings: Readonly<Record<string, string>>, label?: FirstLabel): JsonObject;
}

/** Maximum number of entries of a list. */
export const SITE_LIST_MAX = 200;
/** Memory that common systems need to boot and to run a job, MiB. */
const USUAL_RAM = 2048;

/** Returns the list of machine types: those with enough memory for a first try come first, the smallest one leading. */
export function machineTypeList(
  types: Iterable<{ readonly name: string; readonly cores: number; readonly ram: number }>,
): SiteList {
  const sorted = [...types].sort(
    (a, b) =>
      Number(a.ram < USUAL_RAM) - Number(b.ram < USUAL_RAM) ||
      a.cores - b.cores ||
      a.ram - b.ram ||
      a.name.localeCompare(b.name),
  );
  return siteList(
    sorted.map(({ name, cores, ram }) => ({ name, note: `${cores} ${cores === 1 ? 'core' : 'cores'}, ${ram} MiB` })),
  );
}

/** Returns a list without duplicates; it is `partial` if the cloud has more entries than a list may have. */
export function siteList(options: Iterable<SiteOption>, partial = false): SiteList {
  const all = [...new Map([...options].map((option) => [option.name, option])).values()];
  return { options: all.slice(0, SITE_LIST_MAX), partial: partial || all.length > SITE_LIST_MAX };
}
