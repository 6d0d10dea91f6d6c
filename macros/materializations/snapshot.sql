{#- A mirrored dbt snapshot: its history is in macros/mirror/history.sql. -#}
{% materialization snapshot, adapter='openmirroring' %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- if existing and not existing.is_table -%}
    {%- do exceptions.relation_wrong_type(existing, 'table') -%}
  {%- endif -%}

  {{ run_hooks(pre_hooks) }}

  {%- do mirror_table(target, compiled_code) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
