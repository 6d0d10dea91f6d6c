{#- A mirrored table. Its options are in the README, "Configuration of a node". -#}
{% materialization table, adapter='openmirroring', supported_languages=['sql'] %}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- do mirror_table(target, compiled_code) -%}

  {%- do apply_grants(target, config.get('grants'), should_revoke=true) -%}
  {%- do persist_docs(target, model) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
