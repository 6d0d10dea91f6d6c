{#- dbt's functions, as Spark 4 writes them. -#}
{% macro openmirroring__scalar_function_create_replace_signature_sql(target_relation) %}
  create or replace function {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  returns {{ model.returns.data_type }}
  {{ scalar_function_volatility_sql() }}
  {{ comment_clause() }}
{% endmacro %}

{% macro openmirroring__formatted_scalar_function_args_sql() %}
  {%- set arguments = [] -%}
  {%- for argument in model.arguments -%}
    {%- set default = argument.get('default_value') -%}
    {%- set default = '' if default is none else ' default ' ~ default -%}
    {%- do arguments.append(adapter.quote(argument.name) ~ ' ' ~ argument.data_type ~ default) -%}
  {%- endfor -%}
  {{ arguments | join(', ') }}
{% endmacro %}

{#- The line ends before dbt's semicolon: the body may end with a comment. -#}
{% macro openmirroring__scalar_function_body_sql() %}
  return {{ model.compiled_code }}
{% endmacro %}

{% macro openmirroring__scalar_function_volatility_sql() %}
  {%- set volatility = config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    deterministic
  {%- elif volatility == 'non-deterministic' -%}
    not deterministic
  {%- elif volatility -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
{% endmacro %}
