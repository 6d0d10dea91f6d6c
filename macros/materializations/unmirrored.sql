{#- What is not mirrored yet must say so, or be declared to stay in Spark. -#}
{% materialization incremental, adapter='openmirroring', supported_languages=['sql'] %}
  {%- do openmirroring__require_unmirrored() -%}
  {{ return(materialization_incremental_spark()) }}
{% endmaterialization %}


{% materialization snapshot, adapter='openmirroring' %}
  {%- do openmirroring__require_unmirrored() -%}
  {{ return(materialization_snapshot_spark()) }}
{% endmaterialization %}


{% macro openmirroring__require_unmirrored() %}
  {%- if adapter.node_config(model.config).mirror -%}
    {%- do exceptions.raise_compiler_error(
      'The materialization ' ~ model.config.materialized ~ ' cannot be mirrored yet. Use `materialized: table`, '
      ~ 'or set `mirror: false` to keep it in Spark alone.'
    ) -%}
  {%- endif -%}
{% endmacro %}
