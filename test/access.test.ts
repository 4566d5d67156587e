import { allMethodOptions, type MethodOptions } from 'platform/rpc/method-options.ts';

/**
 * Who may call every method, written by hand: not derived from the protos, so that a mistake there is noticed. Each
 * line is: kinds of principal; calling processes; the role that a user needs; the capability that the licence tier
 * needs; whether a client may repeat a call whose outcome it does not know.
 */
const ACCESS = `
/auth.v1.AuthService/Authenticate              SERVICE           gateway  -      -       repeatable
/auth.v1.AuthService/ShareRates                SERVICE           gateway  -      -       repeatable
/auth.v1.AuthService/FindStoppedActors         SERVICE           agents   -      -       repeatable
/auth.v1.AuthService/RecordDenials             SERVICE           gateway  -      -       once
/auth.v1.AuthService/CreateOrganization        OPERATOR          operator -      -       once
/auth.v1.AuthService/ListOrganizations         OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/GetOrganization           OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/DeactivateOrganization    OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/ActivateOrganization      OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/SetOrganizationTier       OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/ListTiers                 OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/CreateUser                OPERATOR          operator -      -       once
/auth.v1.AuthService/ListUsers                 OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/SetUserRoles              OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/SetUserGroups             OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/RemoveUser                OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/AssumeUser                OPERATOR          operator -      -       once
/auth.v1.AuthService/CreateServerToken         USER              operator -      -       once
/auth.v1.AuthService/ListServerTokens          USER              operator -      -       repeatable
/auth.v1.AuthService/RotateServerToken         USER              operator -      -       once
/auth.v1.AuthService/RevokeServerToken         USER              operator -      -       repeatable
/auth.v1.AuthService/IssueJwt                  OPERATOR          operator -      -       once
/auth.v1.AuthService/ListGrants                OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/RevokeGrant               OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/RotateSigningKey          OPERATOR          operator -      -       once
/auth.v1.AuthService/GetJwks                   SERVICE           gateway  -      -       repeatable
/auth.v1.AuthService/WhoAmI                    SERVER_TOKEN,USER gateway  -      -       repeatable
/auth.v1.AuthService/ListAuditEntries          OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/VerifyAuditTrail          OPERATOR          operator -      -       repeatable
/auth.v1.AuthService/ExportAuditEntries        OPERATOR          operator -      -       repeatable

/agents.v1.AgentsService/ListRunnableAgents    SERVER_TOKEN,USER gateway  admin  agents  repeatable
/agents.v1.AgentsService/RunAgent              SERVER_TOKEN,USER,OPERATOR gateway,operator admin agents once
/agents.v1.AgentsService/ListAgentExecutions   SERVER_TOKEN,USER,OPERATOR gateway,operator admin agents repeatable
/agents.v1.AgentsService/GetAgentExecution     SERVER_TOKEN,USER,OPERATOR gateway,operator admin agents repeatable
/agents.v1.AgentsService/CancelAgentExecution  SERVER_TOKEN,USER,OPERATOR gateway,operator admin agents repeatable
/agents.v1.AgentsService/ApplyAgent            OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/PublishAgent          OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/RetireAgent           OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/ListAgents            OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/ListAgentVersions     OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/GetAgentVersion       OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/SetSecret             OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/ListSecrets           OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/DeleteSecret          OPERATOR          operator -      -       repeatable
/agents.v1.AgentsService/UseCallbackToken      SERVICE           auth     -      -       once

/memory.v1.MemoryService/CreateMemoryType      SERVER_TOKEN,USER gateway,operator - memory once
/memory.v1.MemoryService/ListMemoryTypes       SERVER_TOKEN,USER gateway  -      memory  repeatable
/memory.v1.MemoryService/GetMemoryType         SERVER_TOKEN,USER gateway  -      memory  repeatable
/memory.v1.MemoryService/UpdateMemoryType      SERVER_TOKEN,USER gateway  -      memory  once
/memory.v1.MemoryService/DeleteMemoryType      SERVER_TOKEN,USER gateway  -      memory  once
/memory.v1.MemoryService/CancelMemoryTypeChange SERVER_TOKEN,USER gateway -     memory  once
/memory.v1.MemoryService/CreateMemoryObject SERVER_TOKEN,USER,AGENT_EXECUTION gateway,agents -      memory  once
/memory.v1.MemoryService/ListMemoryObjects SERVER_TOKEN,USER,AGENT_EXECUTION gateway,agents -      memory  repeatable
/memory.v1.MemoryService/GetMemoryObject SERVER_TOKEN,USER,AGENT_EXECUTION gateway,agents -      memory  repeatable
/memory.v1.MemoryService/UpdateMemoryObject SERVER_TOKEN,USER,AGENT_EXECUTION gateway,agents -      memory  once
/memory.v1.MemoryService/DeleteMemoryObject SERVER_TOKEN,USER,AGENT_EXECUTION gateway,agents -      memory  once

/credits.v1.CreditsService/Grant               OPERATOR                  operator -      -       repeatable
/credits.v1.CreditsService/GetBalance          SERVER_TOKEN,USER,OPERATOR,SERVICE operator,agents,gateway,auth - - repeatable
/credits.v1.CreditsService/Reserve             SERVER_TOKEN,USER,SERVICE agents   -      -       repeatable
/credits.v1.CreditsService/Extend              SERVER_TOKEN,USER,SERVICE agents   -      -       repeatable
/credits.v1.CreditsService/Settle              SERVER_TOKEN,USER,SERVICE agents   -      -       repeatable
/credits.v1.CreditsService/Release             SERVER_TOKEN,USER,SERVICE agents   -      -       repeatable
/credits.v1.CreditsService/ListLedgerRows      OPERATOR                  operator -      -       repeatable
/credits.v1.CreditsService/RebuildLedger       OPERATOR                  operator -      -       once

/platform.v1.DiagnosisService/Diagnose         OPERATOR          operator -      -       repeatable
/platform.v1.JobService/ListJobs               OPERATOR          operator -      -       repeatable
/platform.v1.JobService/RunJob                 OPERATOR          operator -      -       once
`;

const tabled = ACCESS.split('\n')
  .filter((line) => line !== '')
  .map((line) => line.split(/ +/));

const declared = ([path, options]: [string, MethodOptions]): string[] => [
  path,
  options.principals.join(),
  options.callers.join(),
  options.role || '-',
  options.capability || '-',
  options.repeatable ? 'repeatable' : 'once',
];

describe('access', () => {
  it.each(tabled)('of %s is what the table says', (...row) => {
    const found = [...allMethodOptions()].find(([path]) => path === row[0]);
    expect(found && declared(found)).toEqual(row);
  });
  it('is in the table for every method', () => {
    expect([...allMethodOptions().keys()].sort()).toEqual(tabled.map(([path]) => path).sort());
  });
  it('needs a token for every method but the public keys of JWTs', () => {
    const withoutToken = [...allMethodOptions()].filter(([, options]) => options.public).map(([path]) => path);
    expect(withoutToken).toEqual(['/auth.v1.AuthService/GetJwks']);
  });
});
