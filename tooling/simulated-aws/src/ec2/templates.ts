/** Launch templates. */

import type {
  CreateLaunchTemplateRequest,
  CreateLaunchTemplateResult,
  CreateLaunchTemplateVersionRequest,
  CreateLaunchTemplateVersionResult,
  DeleteLaunchTemplateRequest,
  DeleteLaunchTemplateResult,
  DescribeLaunchTemplatesRequest,
  DescribeLaunchTemplatesResult,
  DescribeLaunchTemplateVersionsRequest,
  DescribeLaunchTemplateVersionsResult,
  LaunchTemplate,
  LaunchTemplateVersion,
  RunInstancesRequest,
} from '@aws-sdk/client-ec2';
import { operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError, invalidCombination, missing } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { filtered, pageOf, type Filterable } from './lists.js';
import type { Template, TemplateVersion } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

/** e.g. `{ LaunchTemplateId, Version }`. */
interface Specification {
  readonly LaunchTemplateId?: string | undefined;
  readonly LaunchTemplateName?: string | undefined;
  readonly Version?: string | undefined;
}

const NAME = /^[a-zA-Z0-9().\-/_]{3,128}$/;

const FILTERS: Filterable<Template> = {
  'launch-template-name': ({ name }) => name,
  'create-time': ({ createdAt }) => new Date(createdAt).toISOString(),
};

/** Returns the template that a specification names, with the version. Throws if there is none. */
export function templateVersion(
  region: Region,
  { LaunchTemplateId: id, LaunchTemplateName: name, Version: version = '$Default' }: Specification,
  call: AwsCall,
): { readonly template: Template; readonly version: TemplateVersion } {
  const template = findTemplate(region, id, name, call);
  const wanted =
    version === '$Default'
      ? template.defaultVersion
      : version === '$Latest'
        ? template.versions.length
        : Number(version);
  const found = template.versions.find((one) => one.version === wanted);
  if (found !== undefined) return { template, version: found };
  const message = `Could not find launch template version ${version}`;
  throw new AwsError('InvalidLaunchTemplateId.VersionNotFound', message);
}

function findTemplate(region: Region, id: string | undefined, name: string | undefined, { asOf }: AwsCall): Template {
  if (id !== undefined && name !== undefined) {
    throw invalidCombination('A launch template is named either by its id or by its name');
  }
  if (id !== undefined) return region.templates.one(id, asOf);
  if (name === undefined) throw missing('LaunchTemplateId');
  const found = region.templates.seen(asOf).find((template) => template.name === name);
  if (found !== undefined) return found;
  const message = `The specified launch template, with template name ${name}, does not exist.`;
  throw new AwsError('InvalidLaunchTemplateName.NotFoundException', message);
}

/** Returns a launch with the parameters of its template, and the tags that AWS adds. */
export function withTemplate(
  region: Region,
  input: RunInstancesRequest,
  call: AwsCall,
): { readonly input: RunInstancesRequest; readonly systemTags: ReadonlyMap<string, string> } {
  if (input.LaunchTemplate === undefined) return { input, systemTags: new Map() };
  const { template, version } = templateVersion(region, input.LaunchTemplate, call);
  const { TagSpecifications: templateTags = [], ...data } = version.data;
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const own = input.TagSpecifications ?? [];
  const inherited = templateTags.filter(({ ResourceType: type }) => !own.some((one) => one.ResourceType === type));
  // The fields of a template's data are those of RunInstances with narrower types.
  const merged = { ...data, ...given } as RunInstancesRequest;
  const systemTags = new Map([
    ['aws:ec2launchtemplate:id', template.id],
    ['aws:ec2launchtemplate:version', String(version.version)],
  ]);
  return { input: { ...merged, TagSpecifications: [...own, ...inherited] }, systemTags };
}

export function templateHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  return {
    CreateLaunchTemplate: operation<CreateLaunchTemplateRequest, CreateLaunchTemplateResult>((input, call) =>
      createTemplate(regionOf(call), input, call),
    ),
    CreateLaunchTemplateVersion: operation<CreateLaunchTemplateVersionRequest, CreateLaunchTemplateVersionResult>(
      (input, call) => createVersion(regionOf(call), input, call),
    ),
    DescribeLaunchTemplates: operation<DescribeLaunchTemplatesRequest, DescribeLaunchTemplatesResult>((input, call) => {
      const region = regionOf(call);
      const seen = region.templates.seen(call.asOf);
      const byId = region.templates.require(input.LaunchTemplateIds ?? [], call.asOf);
      const byName = (input.LaunchTemplateNames ?? []).map((name) => findTemplate(region, undefined, name, call));
      const named = [...byId, ...byName];
      const chosen = input.LaunchTemplateIds ?? input.LaunchTemplateNames;
      const found = filtered(chosen === undefined ? seen : named, input.Filters, FILTERS);
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { LaunchTemplates: items.map((template) => shown(template, call)), NextToken };
    }),
    DescribeLaunchTemplateVersions: operation<
      DescribeLaunchTemplateVersionsRequest,
      DescribeLaunchTemplateVersionsResult
    >((input, call) => {
      const template = findTemplate(regionOf(call), input.LaunchTemplateId, input.LaunchTemplateName, call);
      const versions = (input.Versions ?? template.versions.map(({ version }) => String(version))).map((Version) =>
        templateVersion(regionOf(call), { LaunchTemplateId: template.id, Version }, call),
      );
      return { LaunchTemplateVersions: versions.map(({ version }) => shownVersion(template, version, call)) };
    }),
    DeleteLaunchTemplate: operation<DeleteLaunchTemplateRequest, DeleteLaunchTemplateResult>((input, call) => {
      const region = regionOf(call);
      const template = findTemplate(region, input.LaunchTemplateId, input.LaunchTemplateName, call);
      region.templates.remove(template, call.now);
      return { LaunchTemplate: shown(template, call) };
    }),
  };
}

function createTemplate(region: Region, input: CreateLaunchTemplateRequest, call: AwsCall): CreateLaunchTemplateResult {
  return region.idempotency.run(call.operation, input, () => {
    const { LaunchTemplateName: name = '', LaunchTemplateData: data = {} } = input;
    const tags = tagsByType(input.TagSpecifications, ['launch-template']).get('launch-template');
    if (tags !== undefined) call.authorize('ec2:CreateTags');
    if (!NAME.test(name)) {
      throw new AwsError('InvalidLaunchTemplateName.MalformedException', `Invalid launch template name: ${name}`);
    }
    if (region.templates.all().some((template) => template.name === name)) {
      throw new AwsError('InvalidLaunchTemplateName.AlreadyExistsException', 'Launch template name already in use.');
    }
    const version = { version: 1, description: input.VersionDescription, createdAt: call.now, data };
    const resource = region.newResource(KINDS.template, tags);
    const template = region.templates.add({ ...resource, name, versions: [version], defaultVersion: 1 });
    return () => ({ LaunchTemplate: shown(template, call) });
  });
}

function createVersion(
  region: Region,
  input: CreateLaunchTemplateVersionRequest,
  call: AwsCall,
): CreateLaunchTemplateVersionResult {
  return region.idempotency.run(call.operation, input, () => {
    const template = findTemplate(region, input.LaunchTemplateId, input.LaunchTemplateName, call);
    const source =
      input.SourceVersion === undefined
        ? {}
        : templateVersion(region, { LaunchTemplateId: template.id, Version: input.SourceVersion }, call).version.data;
    const version: TemplateVersion = {
      version: template.versions.length + 1,
      description: input.VersionDescription,
      createdAt: call.now,
      data: { ...source, ...input.LaunchTemplateData },
    };
    template.versions.push(version);
    return () => ({ LaunchTemplateVersion: shownVersion(template, version, call) });
  });
}

function shown(
  { id, name, versions, defaultVersion, createdAt, tags }: Template,
  { principal }: AwsCall,
): LaunchTemplate {
  return {
    ...{ LaunchTemplateId: id, LaunchTemplateName: name, CreatedBy: principal.arn, Tags: shownTags(tags) },
    ...{ CreateTime: new Date(createdAt), DefaultVersionNumber: defaultVersion, LatestVersionNumber: versions.length },
  };
}

function shownVersion(
  { id, name, defaultVersion }: Template,
  { version, description, createdAt, data }: TemplateVersion,
  { principal }: AwsCall,
): LaunchTemplateVersion {
  return {
    ...{ LaunchTemplateId: id, LaunchTemplateName: name, VersionNumber: version, VersionDescription: description },
    ...{ CreateTime: new Date(createdAt), CreatedBy: principal.arn, DefaultVersion: version === defaultVersion },
    // An answer shows what the request describes.
    LaunchTemplateData: data,
  };
}
