{{/* threadwarden.yaml as an object: the values, with the address of a runtime in the same pod. */}}
{{- define "threadwarden.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if eq .Values.topology "sidecar" -}}
{{- $upstream := default (dict) $config.upstream -}}
{{- if not $upstream.url -}}
{{- $_ := set $upstream "url" (printf "http://127.0.0.1:%d" (int .Values.runtime.port)) -}}
{{- $_ := set $config "upstream" $upstream -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "threadwarden.isSqlite" -}}
{{- if hasPrefix "sqlite:" (default "sqlite:" .Values.config.ownership.store) -}}true{{- end -}}
{{- end -}}

{{/* The keys that a running gateway does not reload. A change of one of them restarts the pods. */}}
{{- define "threadwarden.restartKeys" -}}
{{- $config := .Values.config -}}
{{- $limits := default (dict) $config.limits -}}
{{- $admin := default (dict) $config.admin -}}
{{- $keys := dict
  "listen" (omit (default (dict) $config.listen) "tls")
  "hasTls" (hasKey (default (dict) $config.listen) "tls")
  "hasClientCertificates" (dig "listen" "tls" "clientCertificates" dict $config | empty | not)
  "health" $config.health
  "admin" (pick $admin "host" "port")
  "hasAdmin" (hasKey $config "admin")
  "store" $config.ownership.store
  "postgres" $config.ownership.postgres
  "limits" (pick $limits "headers" "bodiesInFlight")
  "audit" $config.audit
  "workers" $config.workers -}}
{{- toJson $keys | sha256sum -}}
{{- end -}}

{{/* The paths that callers use, as a JSON list. */}}
{{- define "threadwarden.publicPaths" -}}
{{- $config := .Values.config -}}
{{- $paths := list -}}
{{- range $one := concat (list $config.upstream) (values (default (dict) $config.upstreams)) -}}
{{- with $one -}}
{{- $paths = append $paths (default .basePath .publicPath) -}}
{{- end -}}
{{- end -}}
{{- range $key, $agent := default (dict) $config.agents -}}
{{- $paths = append $paths (default (printf "/agents/%s" $key) $agent.publicPath) -}}
{{- end -}}
{{- if dig "identity" "assertion" nil $config -}}
{{- $paths = append $paths "/.well-known/jwks.json" -}}
{{- end -}}
{{- $paths | uniq | sortAlpha | toJson -}}
{{- end -}}
