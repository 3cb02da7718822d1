{{/* threadwarden.yaml: the values, with the address of a runtime in the same pod, and with the files of tls.secretName. */}}
{{- define "threadwarden.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if and (eq .Values.topology "sidecar") $config.upstream (not $config.upstream.url) -}}
{{- $_ := set $config.upstream "url" (printf "http://127.0.0.1:%d" (int .Values.runtime.port)) -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $tls := default (dict) $config.listen.tls -}}
{{- $_ := set $tls "certificateFile" "/etc/threadwarden/tls/tls.crt" -}}
{{- $_ := set $tls "keyFile" "/etc/threadwarden/tls/tls.key" -}}
{{- $_ := set $config.listen "tls" $tls -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "threadwarden.isLoopback" -}}
{{- if regexMatch "^http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:[0-9]+)?$" . -}}true{{- end -}}
{{- end -}}

{{- define "threadwarden.isTls" -}}
{{- if or .Values.tls.secretName (hasKey .Values.config.listen "tls") -}}true{{- end -}}
{{- end -}}

{{- define "threadwarden.isSqlite" -}}
{{- if hasPrefix "sqlite:" (default "sqlite:" .Values.config.ownership.store) -}}true{{- end -}}
{{- end -}}

{{/* The keys of upstreams besides the one that the chart protects, as a JSON list. */}}
{{- define "threadwarden.unprotectedUpstreams" -}}
{{- $config := .Values.config -}}
{{- $names := list -}}
{{- range $kind := list "upstreams" "agents" -}}
{{- range $key, $one := default (dict) (get $config $kind) -}}
{{- if not (and (eq $.Values.topology "sidecar") (include "threadwarden.isLoopback" $one.url)) -}}
{{- $names = append $names (printf "%s.%s" $kind $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* A single one, of whatever kind, is that of runtime.selector. */ -}}
{{- if and (eq .Values.topology "standalone") (not $config.upstream) (eq (len $names) 1) -}}
{{- $names = list -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* The keys that a running gateway does not reload. A change of one of them restarts the pods. */}}
{{- define "threadwarden.restartKeys" -}}
{{- $config := .Values.config -}}
{{- $limits := default (dict) $config.limits -}}
{{- $admin := default (dict) $config.admin -}}
{{- $keys := dict
  "listen" (omit (default (dict) $config.listen) "tls")
  "hasTls" (include "threadwarden.isTls" .)
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
