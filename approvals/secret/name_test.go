package secret

import "testing"

func TestCredentialName(t *testing.T) {
	t.Parallel()
	yes := []string{
		"password", "Password", "db_password", "dbPassword", "PASSWORD", "password2", "password_confirmation", "userpassword", "pwd",
		"token", "apiToken", "api_token", "accessToken", "access-token", "accesstoken", "X-Auth-Token", "refreshToken", "session_token",
		"bot_token", "githubtoken", "secret", "client_secret", "clientSecret", "clientsecret", "secret_value", "secret_access_key",
		"aws_secret_access_key", "access_key_id", "accessKeyId", "api_key", "apiKey", "APIKey", "apikey", "X-API-Key", "x_api_key_1",
		"tracing_api_key", "tracingApiKey", "openai_api_key", "private_key", "privateKey", "privateKeyPem", "signing_key", "encryption_key",
		"credential", "credentials", "Authorization", "authorization_header", "cookie", "Set-Cookie", "passphrase", "jwt", "connection_string",
		"connectionString", "accessTokens", "account_key", "webhook_secret", "bearer",
	}
	no := []string{
		"", "_", "key", "name", "tokens", "input_tokens", "output_tokens", "total_tokens", "totalTokens", "inputTokens", "cached_tokens",
		"cache_write_tokens", "reasoning_tokens", "max_tokens", "token_count", "tokenCount", "token_type", "tokenizer", "nextPageToken",
		"next_page_token", "pageToken", "pagetoken", "continuationToken", "continuation_token", "sync_token", "eos_token", "pad_token", "stop_token",
		"idempotency_key", "idempotencyKey", "prompt_cache_key", "generated_prompt_cache_key", "tracing_api_key_hash", "password_hash",
		"secret_name", "secretName", "secret_ref", "api_key_id", "functionToolStateKey", "tool_lookup_key", "lookupKey", "current_agent_key",
		"primary_key", "foreign_key", "public_key", "publicKey", "monkey", "keyboard", "author", "authority", "session_id", "previous_response_id",
		"previousResponseId", "tokenUsage", "credential_type", "passwordless", "keys", "hotkey", "partition_key", "sort_key",
	}
	for _, name := range yes {
		if !CredentialName(name) {
			t.Errorf("CredentialName(%q) = false", name)
		}
	}
	for _, name := range no {
		if CredentialName(name) {
			t.Errorf("CredentialName(%q) = true", name)
		}
	}
}
