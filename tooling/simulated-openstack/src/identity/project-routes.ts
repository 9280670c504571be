/** keystone: projects. Only an administrator sees those of other users. */

import { ApiError, type Answer } from '@nodepool/simulated-cloud';
import { json, type OwnedRequest, type Route } from '../http/request-context.js';
import { DOMAIN, type Accounts, type Project } from './accounts.js';

export function projectRoutes(accounts: Accounts, failure: (status: number, message: string) => Answer): Route[] {
  const forbidden = (action: string): ApiError =>
    new ApiError(failure(403, `You are not authorized to perform the requested action: ${action}.`));

  const list = ({ caller, query, serviceUrl }: OwnedRequest): Answer => {
    if (!caller.admin) throw forbidden('identity:list_projects');
    const name = query.get('name');
    const found = accounts.projects.filter((project) => name === null || project.name === name);
    const search = name === null ? '' : `?${query.toString()}`;
    return json(200, {
      projects: found.map((project) => viewOf(project, serviceUrl)),
      links: { next: null, self: `${serviceUrl}/v3/projects${search}`, previous: null },
    });
  };

  const show = ({ caller, params, serviceUrl }: OwnedRequest): Answer => {
    const id = params['id'] ?? '';
    if (!caller.admin && id !== caller.projectId) throw forbidden('identity:get_project');
    const project = accounts.projects.find((candidate) => candidate.id === id);
    if (project === undefined) throw new ApiError(failure(404, `Could not find project: ${id}.`));
    return json(200, { project: viewOf(project, serviceUrl) });
  };

  return [
    { method: 'GET', path: '/v3/projects', operation: 'projects.list-all', handle: list },
    { method: 'GET', path: '/v3/projects/:id', operation: 'projects.show', handle: show },
  ];
}

function viewOf({ id, name }: Project, serviceUrl: string): object {
  return {
    id,
    name,
    domain_id: DOMAIN.id,
    description: '',
    enabled: true,
    parent_id: DOMAIN.id,
    is_domain: false,
    tags: [],
    options: {},
    links: { self: `${serviceUrl}/v3/projects/${id}` },
  };
}
