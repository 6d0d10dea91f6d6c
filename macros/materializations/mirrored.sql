{#- Tables, incremental models, seeds and dbt snapshots: what happens between the hooks is in
    dbt/adapters/openmirroring/node/materialize.py. -#}
{% macro mirror_materialization() %}
  {#- what hooks do, a dry run could not undo -#}
  {%- if not target.dry_run %}{{ run_hooks(pre_hooks) }}{% endif -%}
  {%- set relation = adapter.materialize(context) -%}
  {%- if not target.dry_run %}{{ run_hooks(post_hooks) }}{% endif -%}
  {{ return({'relations': [relation]}) }}
{% endmacro %}


{% materialization table, adapter='openmirroring', supported_languages=['sql', 'python'] %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization incremental, adapter='openmirroring', supported_languages=['sql', 'python'] %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization seed, adapter='openmirroring' %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization snapshot, adapter='openmirroring' %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization view, adapter='openmirroring' %}
  {{ return(mirror_materialization() if target.dry_run else create_or_replace_view()) }}
{% endmaterialization %}
