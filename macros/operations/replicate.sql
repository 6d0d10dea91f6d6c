{#- Apply what was published to the mirrored tables beside a local landing zone, as the service would. -#}
{% macro mirror_replicate() %}
  {% do adapter.dispatch('mirror_replicate', 'dbt')() %}
{% endmacro %}

{% macro openmirroring__mirror_replicate() %}
  {%- set replication = adapter.replicate() -%}
  {%- for line in replication.lines -%}
    {%- do print(line) -%}
  {%- endfor -%}
  {%- if replication.failed -%}
    {%- do exceptions.raise_compiler_error('Not replicated: ' ~ replication.failed | join(', ')) -%}
  {%- endif -%}
{% endmacro %}
