/** What the audit trail reports; docs/events.md says which service writes which of them. */
export const AUDIT_ACTIONS: readonly string[] = [
  ...['organization.create', 'organization.activate', 'organization.deactivate', 'organization.set_tier'],
  ...['user.create', 'user.remove', 'user.set_roles', 'user.set_groups', 'user.assume'],
  ...['server_token.create', 'server_token.rotate', 'server_token.revoke', 'jwt.issue', 'grant.revoke'],
  ...['agent.apply', 'agent.publish', 'agent.retire', 'agent.run', 'agent.cancel_run'],
  ...['secret.set', 'secret.delete', 'credits.grant'],
  ...['memory_type.create', 'memory_type.update', 'memory_type.delete'],
  ...['memory_object.create', 'memory_object.update', 'memory_object.delete', 'request.refused'],
];
