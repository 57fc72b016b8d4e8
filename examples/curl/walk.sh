#!/usr/bin/env bash
# A paused run, handed in, watched and read back with curl and jq.
#
#   go run ./cmd/holdpoint dev          # in another terminal; copy its export line here
#   examples/curl/walk.sh               # then click on the new card
#
# HOLDPOINT_KEY is the agent's key, HOLDPOINT_API the address of the API.
set -euo pipefail

api=${HOLDPOINT_API:-http://127.0.0.1:8080}
: "${HOLDPOINT_KEY:?copy the export line that holdpoint dev prints}"
command -v jq >/dev/null || { echo "this walk needs jq" >&2; exit 1; }
state=$(dirname "${BASH_SOURCE[0]}")/../../cmd/holdpoint/demo/deploy.json
run=run_curl_$(date +%s)

call() { # call METHOD PATH [BODY]: prints the answer, and fails on a problem after printing it
	local args=(-sS -X "$1" -H "Authorization: Bearer $HOLDPOINT_KEY" --fail-with-body)
	if (($# > 2)); then args+=(-H 'Content-Type: application/json' --data-binary @-); fi
	curl "${args[@]}" "$api$2" <<<"${3-}" || { echo >&2; exit 1; }
}

echo "1. hand the paused run in"
intake=$(jq -n --arg run "$run" --slurpfile state "$state" '{run: {
	id: $run, app_state_version: "demo-agent/v1", agent_revision: "git:curl", requester: "slack:U0REQ",
	state: {format: "openai-agents-js", sdk_version: "0.20.0", value: $state[0]}}}')
paused=$(call POST /v1/approvals "$intake")
id=$(jq -r '.approvals[0].approval_id' <<<"$paused")
jq '{run_id, pause, approvals: [.approvals[] | {approval_id, tool, target, status, rule, decide_by}]}' <<<"$paused"

echo "2. the same intake again gives the same approval"
again=$(call POST /v1/approvals "$intake" | jq -r '.approvals[0].approval_id')
[[ $again == "$id" ]] && echo "   $again"

echo "3. click on the card with $id at its foot; its status, as it changes:"
version=0
while :; do
	seen=$(call GET "/v1/approvals/$id?wait=30s&since=$version&follow=child")
	if (($(jq .version <<<"$seen") == version)) && [[ $(jq -r .approval_id <<<"$seen") == "$id" ]]; then continue; fi # nothing new yet
	id=$(jq -r .approval_id <<<"$seen")
	version=$(jq .version <<<"$seen")
	jq -r '"   \(.status) \(.held // .reason_code // "")"' <<<"$seen"
	case $(jq -r .status <<<"$seen") in completed | failed | rejected | expired | revoked | migration_required | uncertain) break ;; esac
done
jq '{decided_by, message, receipt, result, ledger}' <<<"$seen"

echo "4. its audit trail"
call GET "/v1/approvals/$id/events" | jq -r '.events[] | "   \(.at)  \(.kind)  \(.actor)"'

echo "5. an agent that runs the tool's body claims first; what has happened is not done again"
curl -sS -X POST -H "Authorization: Bearer $HOLDPOINT_KEY" "$api/v1/operations/$id/claim" | jq .
