{#- What is not mirrored yet must say so, or be declared to stay in Spark. -#}
{% materialization snapshot, adapter='openmirroring' %}
  {%- if adapter.node_config(model.config).mirror -%}
    {%- do exceptions.raise_compiler_error(
      'A snapshot cannot be mirrored yet. Set `mirror: false` to keep it in Spark alone.'
    ) -%}
  {%- endif -%}
  {{ return(materialization_snapshot_spark()) }}
{% endmaterialization %}
